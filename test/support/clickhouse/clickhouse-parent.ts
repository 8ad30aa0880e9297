/**
 * A process with ClickHouse's server as its child. Tests end it in every way.
 *
 *     fork('test/support/clickhouse/clickhouse-parent.ts', [DIRECTORY])
 *
 * It sends the server's address once the server answers. Messages control it: `exit` exits without closing anything, and `other child` starts another process that outlives it, and sends its id. SIGINT and
 * SIGTERM end it, unless it was told to `ignore` them: then it reports each signal.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { pino } from 'pino'
import { startClickHouseServer } from '../../../services/clickhouse-server/server.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'

export interface Told {
  url?: string
  user?: string
  password?: string
  pid?: number
  otherChild?: number | undefined
  signal?: string
}

const [directory = ''] = process.argv.slice(2)
process.on('message', message => {
  if (message === 'exit') process.exit(0)
  if (message === 'other child') {
    const other = spawn('sleep', ['600'], { stdio: 'ignore', detached: true })
    tell({ otherChild: other.pid })
  }
  if (message === 'ignore') {
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => tell({ signal }))
    tell({})
  }
})
const { url, user, password, pid } = await startClickHouseServer({
  dataDirectory: join(directory, 'tables'),
  filesDirectory: join(directory, 'clickhouse'),
  databases: defaultDatabases,
  logger: pino({ level: 'silent' }),
})
tell({ url, user, password, pid: pid() })

function tell(told: Told): void {
  process.send?.(told)
}
