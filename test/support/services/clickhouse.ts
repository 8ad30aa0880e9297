/**
 * A ClickHouse server, for suites that create their own databases in it: the given one, or the one that comes with the
 * program.
 */
import { startClickHouse } from '../clickhouse.ts'
import { atAddress, inOrder, type TestService } from './test-service.ts'

export interface TestClickHouse {
  /** Without credentials. */
  url: string
  user: string
  password: string
  close(): Promise<void>
}

export const clickHouseService: TestService<TestClickHouse> = inOrder('ClickHouse', [
  atAddress('PLEDGEVIEW_TEST_CLICKHOUSE_URL', async address => {
    const url = new URL(address)
    const [user, password] = [decodeURIComponent(url.username) || 'default', decodeURIComponent(url.password)]
    return { url: url.origin, user, password, close: async () => undefined }
  }),
  {
    requirement: async () => ({
      isMet: true,
      reason: '',
      source: 'its own server, from the npm package chdb',
    }),
    async open() {
      const { url, user, password, stop } = await startClickHouse()
      return { url, user, password, close: stop }
    },
  },
])
