/**
 * A ClickHouse server, for suites that make databases of their own in it. Where there is none it is chDB behind the HTTP
 * door, which its source says.
 */
import { startClickHouseDoor } from '../clickhouse-door.ts'
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
// What a header, a URL and XML would each spoil in a way of its own.
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
      source: 'chDB behind the HTTP door, not a ClickHouse server',
    }),
    async open() {
      const door = await startClickHouseDoor(credentials)
      return { ...credentials, url: door.url, close: door.stop }
    },
  },
])
