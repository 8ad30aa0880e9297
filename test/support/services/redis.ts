/** A Redis for suites that only send commands. Others may use it too: use separate keys. */
import { Redis } from 'ioredis'
import { redisProgram, startRedis, type TestRedis } from '../redis.ts'
import { atAddress, inOrder, type TestService } from './test-service.ts'

export const redisService: TestService<TestRedis> = inOrder('Redis', [
  atAddress('PLEDGEVIEW_TEST_REDIS_URL', connect),
  {
    requirement: async () => ({ ...redisProgram, source: 'redis-server of this machine' }),
    open: () => startRedis(),
  },
])

async function connect(url: string): Promise<TestRedis> {
  const client = new Redis(url)
  return {
    url,
    client,
    // Its connection may have ended already with the server. Then it cannot be closed in order.
    close: async () => client.disconnect(),
  }
}
