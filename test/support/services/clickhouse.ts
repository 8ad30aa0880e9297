/**
 * A ClickHouse server, for suites that create their own databases in it: the given one, or the one that comes with the
 * program.
 */
import { type ClickHouseAddress, startClickHouse } from '../clickhouse/clickhouse.ts'
import { imageOf, inContainer } from './docker.ts'
import { atAddress, type Closable, inOrder, type TestService } from './test-service.ts'

const port = 8123
// Characters that a header, a URL and XML would each corrupt in a different way.
const credentials = { user: 'pledgeview', password: 'p:ass wörd' }

export const clickHouseService: TestService<ClickHouseAddress & Closable> = inOrder('ClickHouse', [
  atAddress('PLEDGEVIEW_TEST_CLICKHOUSE_URL', async address => {
    const url = new URL(address)
    const [user, password] = [decodeURIComponent(url.username) || 'default', decodeURIComponent(url.password)]
    return { url: url.origin, user, password }
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
