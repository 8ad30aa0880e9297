/** Runs ClickHouse's own server in a container: on all addresses, with the user from the environment, until SIGTERM. */
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { start } from '../../../services/clickhouse-server/start.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'

const { CLICKHOUSE_USER: user = 'default', CLICKHOUSE_PASSWORD: password = '' } = process.env
const { child } = await start({
  dataDirectory: '/var/lib/clickhouse/tables',
  filesDirectory: '/var/lib/clickhouse/clickhouse',
  httpPort: 8123,
  databases: defaultDatabases,
  // The user may have the program's own name, and then replaces it. So the server is queried with this password, too.
  programPassword: password,
  // In a container, clients outside cannot reach the loopback, and they call the server by the name of its service.
  more: {
    listen_host: Object.values(networkInterfaces())
      .flatMap(addresses => addresses ?? [])
      .filter(({ family }) => family === 'IPv4')
      .map(({ address }) => address),
    http_handlers: { defaults: {} },
  },
  moreUsers: {
    users: {
      [user]: {
        password,
        networks: { ip: '::/0' },
        profile: 'program',
        quota: 'default',
        access_management: 1,
      },
    },
  },
})
const ended = child.ended.then(cause => process.stderr.write(`${cause}\n`))
await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT'), ended])
await child.kill()
