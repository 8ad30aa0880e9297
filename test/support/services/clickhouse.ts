/**
 * A ClickHouse server, for suites that create their own databases in it: the given one, or the one that comes with the
 * program.
 */
import { startClickHouse } from '../clickhouse/clickhouse.ts'
import { imageOf } from '../containers/images.ts'
import { inContainer } from './docker.ts'
import { atAddress, inOrder, type TestService } from './test-service.ts'

export interface TestClickHouse {
  /** Without credentials. */
  url: string
  user: string
  password: string
  close(): Promise<void>
}

const port = 8123
// Characters that a header, a URL and XML would each corrupt in a different way.
const credentials = { user: 'pledgeview', password: 'p:ass wörd' }

export const clickHouseService: TestService<TestClickHouse> = inOrder('ClickHouse', [
  atAddress('PLEDGEVIEW_TEST_CLICKHOUSE_URL', async address => {
    const url = new URL(address)
    const [user, password] = [decodeURIComponent(url.username) || 'default', decodeURIComponent(url.password)]
    return { url: url.origin, user, password, close: async () => undefined }
  }),
  inContainer({
    image: imageOf('clickhouse/clickhouse-server'),
    async configure(container) {
      const { Wait } = await import('testcontainers')
      return container
        .withEnvironment({
          CLICKHOUSE_USER: credentials.user,
          CLICKHOUSE_PASSWORD: credentials.password,
          CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT: '1',
        })
        .withExposedPorts(port)
        .withWaitStrategy(Wait.forHttp('/ping', port))
    },
    open: async container => ({
      ...credentials,
      url: `http://${container.getHost()}:${container.getMappedPort(port)}`,
      close: async () => undefined,
    }),
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
