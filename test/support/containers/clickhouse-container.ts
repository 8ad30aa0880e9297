/** Runs ClickHouse's own server in a container: on all addresses, with the user from the environment, until SIGTERM. */
import { once } from 'node:events'
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
  // In a container, clients outside cannot reach the loopback.
  more: { listen_host: '0.0.0.0' },
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
