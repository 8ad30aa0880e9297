/** A Redis for suites that only send commands. Others may use it too: use separate keys. */
import { Redis } from 'ioredis'
import { imageOf } from '../containers/images.ts'
import { redisProgram, startRedis, type TestRedis } from '../servers/redis.ts'
import { inContainer } from './docker.ts'
import { atAddress, inOrder, type TestService } from './test-service.ts'

const port = 6379

export const redisService: TestService<TestRedis> = inOrder('Redis', [
  atAddress('PLEDGEVIEW_TEST_REDIS_URL', connect),
  inContainer({
    image: imageOf('redis'),
    configure: async container =>
      container.withCommand(['redis-server', '--save', '', '--appendonly', 'no']).withExposedPorts(port),
    open: container => connect(`redis://${container.getHost()}:${container.getMappedPort(port)}`),
  }),
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
