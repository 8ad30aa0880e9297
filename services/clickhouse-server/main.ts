/**
 * ClickHouse's own server as a process: the library of the npm package `chdb`, called like `clickhouse local`.
 *
 *     STATEMENTS=... node services/clickhouse-server/main.ts CONFIG_FILE [PORT]
 *
 * STATEMENTS open the ports and then never end (configuration.ts). They come in the environment, because every user of
 * this machine can read a process's arguments. PORT is the only port that this process may connect to, if the system can enforce that (outgoing.ts). The library runs on its
 * own thread, so this thread can watch the original stdin. When the parent ends, for any reason, that pipe closes and this process
 * ends too. This process does nothing else. The library reports failures on stderr. A failed statement does not end this process; the parent ends it.
 *
 * It ignores SIGTERM, which systemd sends to every process of a unit at once: the parent still needs it while it closes.
 *
 * It ends by killing itself, because `process.exit` would wait for the library's thread. Acknowledged rows are on
 * disk.
 */
import { Socket } from 'node:net'
import { libchdbPath } from 'chdb/libchdb'
import { DataType, load, open } from 'ffi-rs'
import { canRefuseCalls, refuseCalls } from './outgoing.ts'
import { takeTerminal } from './terminal.ts'

const [configFile = '', portAllowed] = process.argv.slice(2)
const statements = process.env.STATEMENTS ?? ''
// Everything in the data directory is private.
process.umask(0o077)
process.on('SIGTERM', () => {})
new Socket({ fd: takeTerminal() }).on('error', end).on('end', end).resume()
if (portAllowed !== undefined && canRefuseCalls()) refuseCalls(Number(portAllowed))

open({ library: 'chdb', path: libchdbPath() })
const commandLine = [
  'clickhouse',
  `--config-file=${configFile}`,
  // ClickHouse ignores the level in the configuration file.
  '--log-level=warning',
  '--interactive',
  '--disable_suggestion',
  `--query=${statements}`,
]
await load({
  library: 'chdb',
  funcName: 'chdb_query_cmdline',
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [commandLine.length, commandLine],
  runInNewThread: true,
})
end()

function end(): void {
  process.kill(process.pid, 'SIGKILL')
}
