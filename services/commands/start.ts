/**
 * `npm start`: the embedded service, with demo data.
 *
 * On a new data directory it loads the demo platform, issues a demo key and prints curl lines to paste. Then a few
 * simulated pledges per second keep the numbers moving. With --no-demo it starts empty.
 */

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Logger } from 'pino'
import { issueKey, keyDirectory } from '../api-keys/api-keys.ts'
import { analystUser } from '../clickhouse-server/configuration.ts'
import type { OpenDoor } from '../clickhouse-server/door.ts'
import { canRefuseCalls } from '../clickhouse-server/outgoing.ts'
import { appendDemo, runTrickle } from '../demo/load-demo.ts'
import { openUnkindDoor } from '../demo/unkind.ts'
import { type DataDirectory, type Demo, demoFile, openDataDirectory } from '../embedded/data-directory.ts'
import { type EmbeddedService, startEmbeddedService } from '../embedded/service.ts'
import type { Mail } from '../portal/ports.ts'
import { closing } from '../runtime/async/closing.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { createProgress } from '../runtime/progress.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { Databases } from '../tables/port.ts'
import {
  type Command,
  defaultDataDirectory,
  embeddedDirectory,
  type Io,
  readArguments,
  UsageError,
  type Values,
  wholeNumber,
} from './command.ts'
import { printableLines } from './printable.ts'
import { untilInterrupted } from './services.ts'

const trickleMs = 1_000

const options = {
  '--port N': 'the public API (default 8080; 0 takes a free port)',
  '--portal-port N': 'the developer portal (default 8081; 0 takes a free port)',
  '--ops-port N': 'health, readiness, metrics and status (default 9090; 0 takes a free port)',
  '--sql-port N': 'SQL for data teams over HTTP (default 8123; 0 takes a free port)',
  '--sql-native-port N': "SQL over ClickHouse's native protocol (default 9000; 0 takes a free port)",
  '--no-sql': 'no SQL for data teams',
  '--data-dir D': `the directory that keeps everything (default ${defaultDataDirectory})`,
  '--no-demo': 'start empty: no demo events, no demo key, no simulated pledges',
  '--unkind':
    'to try a copy, with the demo: its campaigns leave, come back and change in bursts, snapshots last 10 s, and a second address of the API refuses requests',
}

type PortOption = 'port' | 'portal-port' | 'ops-port' | 'sql-port' | 'sql-native-port'

interface Welcome {
  directory: DataDirectory
  config: Config
  logger: Logger
  values: Values<typeof options>
  /** Aborts when the service ends. */
  signal: AbortSignal
}

export const startCommand: Command = {
  help: {
    call: 'start [--port N] [--portal-port N] [--ops-port N] [--sql-port N] [--sql-native-port N] [--no-sql] [--data-dir D] [--no-demo] [--unkind]',
    does:
      'Runs the embedded service until it is interrupted: portal, API, projector and ClickHouse, with everything in one data directory. ' +
      'On a new data directory it loads demo events, issues a demo key and prints curl lines to paste.',
    options,
    examples: ['start', 'start --no-demo --data-dir /var/lib/pledgeview'],
    cost: 'ClickHouse may take half of the memory, at least 512 MiB (PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX). The first start also loads the demo platform.',
  },

  async run(args, io) {
    const { values } = readArguments(args, options)
    if (values.unkind && values['no-demo'])
      throw new UsageError('--unkind needs the demo: give it without --no-demo')
    const optionOf = new Map<number | undefined, PortOption>()
    const portOf = (name: PortOption, standard: number) => {
      const port = wholeNumber(name, values[name] ?? String(standard), { min: 0, max: 65_535 })
      optionOf.set(port, name)
      return port
    }
    const ports = { port: portOf('port', 8080), opsPort: portOf('ops-port', 9090) }
    const sql = { httpPort: portOf('sql-port', 8123), nativePort: portOf('sql-native-port', 9000) }
    const config = readConfig({
      PLEDGEVIEW_LOG_LEVEL: process.stderr.isTTY ? 'warn' : 'info',
      // Walks cross from one snapshot to the next, and come to their end: each crossing takes a few seconds.
      ...(values.unkind && { PLEDGEVIEW_CACHE_MS: '10000' }),
      ...process.env,
    })
    const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
    const portal = {
      port: portOf('portal-port', config.PLEDGEVIEW_PORTAL_PORT),
      showMail: (mail: Mail) => void io.stdout.write(mailText(mail)),
    }
    const directory = openDataDirectory(values['data-dir'] ?? defaultDataDirectory)
    return untilInterrupted('start', logger, signal =>
      closing(async open => {
        const service = open(
          await startEmbeddedService({
            ...{ directory, config, ...ports, portal, logger, signal },
            sql: values['no-sql'] ? undefined : sql,
          }).catch((error: NodeJS.ErrnoException & { port?: number }) => {
            const option = error.code === 'EADDRINUSE' && optionOf.get(error.port)
            throw option ? new Error(`port ${error.port} is taken: give another with --${option}`) : error
          }),
        )
        const ended = new AbortController()
        open({ close: () => ended.abort() })
        const interrupted = signal.aborted ? undefined : once(signal, 'abort')
        await Promise.race([
          interrupted,
          service.model.clickHouse.failed.then(error => Promise.reject(error)),
          welcome(service, { directory, config, logger, values, signal: ended.signal }, io).then(() => {
            // One that stops while the demo loads ends the start, with its reason.
            service.model.stopped.then(error => {
              if (error) io.stderr.write(stoppedText(error))
            })
            return interrupted
          }),
        ])
      }),
    )
  },
}

/** Tells where it is served, and loads the demo platform into a new directory. Pledges of the demo keep coming until the signal aborts. */
async function welcome(
  service: EmbeddedService,
  { directory, config, logger, values, signal }: Welcome,
  io: Io,
): Promise<void> {
  if (service.portalUrl) io.stdout.write(`Open the portal: ${service.portalUrl}\n`)
  if (config.PLEDGEVIEW_SMTP_URL === undefined)
    io.stdout.write('There is no mail server: sign-in links appear here\n')
  const demo = values['no-demo'] ? undefined : await demoOf(service, directory)
  const isNew = demo !== undefined && !demo.is_loaded
  if (isNew) await loadDemo(service, directory, demo, io)
  io.stdout.write(`Pledgeview serves ${service.apiUrl} (ops: ${service.opsUrl})\n`)
  if (service.model.door) {
    io.stdout.write(
      sqlText(service.model.door, service.model.databases, config.PLEDGEVIEW_SQL_PASSWORD !== ''),
    )
    if (!canRefuseCalls()) io.stderr.write(openCallsText)
  }
  if (isNew) await showDemo(service, io)
  else io.stdout.write(keyHint(values['data-dir'] ?? defaultDataDirectory, config))
  if (values.unkind && !demo) io.stderr.write(noDemoText)
  if (demo) {
    const runtime = createRuntime(logger)
    if (values.unkind)
      io.stdout.write(unkindText(service, await openUnkindDoor(service.apiUrl, runtime, signal)))
    const trickle = { endMs: demo.now_ms, intervalMs: trickleMs, signal, isUnkind: values.unkind }
    runTrickle(service.model.writer, trickle, runtime).catch((error: unknown) =>
      logger.error({ error: messageOf(error) }, 'the demo trickle ended'),
    )
  }
}

function stoppedText(error: Error): string {
  return `
The projector stopped: ${printableLines(error.message)}
The API keeps serving the data that is there. A key that is revoked meanwhile stays valid until the projector runs again.
`
}

/** A mail of the portal, if there is no mail server. The address is what a person typed. */
function mailText({ to, subject, text }: Mail): string {
  return `\nMail to ${printableLines(to)}: ${printableLines(subject)}\n${printableLines(text)}\n`
}

/** Access to the data teams' SQL, with a line to paste. */
function sqlText({ url, nativePort }: OpenDoor, databases: Databases, hasPassword: boolean): string {
  const question = `SELECT status, count() FROM ${databases.views}.campaigns GROUP BY status`
  // ClickHouse refuses a user in the address beside a password in a header.
  const door = hasPassword
    ? `${url}/' -H 'X-ClickHouse-User: ${analystUser}' -H "X-ClickHouse-Key: $PLEDGEVIEW_SQL_PASSWORD"`
    : `${url}/?user=${analystUser}'`
  return `SQL for data teams, user ${analystUser}: ${url}/play?user=${analystUser} (native protocol: port ${nativePort})

  curl -s '${door} -d '${question}'

`
}

const openCallsText = `This system has no Landlock rules for TCP (Linux 6.7 or later). So an analyst can make ClickHouse connect to addresses that this
machine reaches. deploy/try.md says how to limit that.

`

function unkindText({ apiUrl }: EmbeddedService, url: string): string {
  return `Mirror the unkind address: ${url}
Stop your program, and ask in its folder, where the client is installed, whether its copy is right (a line of copy.ndjson is a campaign,
WATERMARK the X-Data-As-Of that you kept):

  npx --no @pledgeview/client verify ${apiUrl} copy.ndjson --as-of WATERMARK

`
}

const noDemoText = `--unkind needs the demo, and this data directory has none. Start with a new one: --data-dir D

`

/** A line to paste into the shell that the service was started from. Pure. */
export function keyHint(dataDirectory: string, config: Config): string {
  const isDefault = embeddedDirectory(undefined, config) === dataDirectory
  const quoted = /^[\w./-]+$/.test(dataDirectory)
    ? dataDirectory
    : `'${dataDirectory.replaceAll("'", "'\\''")}'`
  const where = isDefault ? '' : ` --data-dir ${quoted}`
  const who = '--account me --name Me --url https://example.com --email me@example.com'
  return `For a key: npm run --silent pledgeview -- keys issue ${who}${where}\n`
}

/** The demo of the directory: the existing one, a new one if the journal is empty, or none. */
async function demoOf({ model }: EmbeddedService, directory: DataDirectory): Promise<Demo | undefined> {
  const lag = await model.projector.lag()
  const isEmpty = lag.every(({ end }) => end <= 1)
  return demoFile.read(directory) ?? (isEmpty ? { now_ms: Date.now(), is_loaded: false } : undefined)
}

async function loadDemo(
  { model }: EmbeddedService,
  directory: DataDirectory,
  demo: Demo,
  io: Io,
): Promise<void> {
  io.stdout.write('Loading the demo platform.\n')
  demoFile.write(directory, demo)
  const making = createProgress(io.stderr, { label: 'making events' })
  const { appended } = await appendDemo(model.writer, demo.now_ms, events => making.update(events))
  making.done()
  const projecting = createProgress(io.stderr, { label: 'projecting', total: appended })
  await model.whenDrained(waiting => projecting.update(Math.max(0, appended - waiting)))
  projecting.done()
  demoFile.write(directory, { ...demo, is_loaded: true })
}

async function showDemo({ model, apiUrl }: EmbeddedService, io: Io): Promise<void> {
  const { key, secret } = await issueKey(
    {
      directory: keyDirectory(model.tables, model.databases),
      writer: model.writer,
      pepper: model.secrets.keyPepper,
      now: Date.now,
      monotonicMs: () => performance.now(),
      randomBytes,
    },
    { account: 'demo', name: 'Demo', url: 'https://example.com', email: 'demo@example.com' },
  )
  const curl = `curl -s -H 'X-API-Key: ${key}' -H 'X-API-Secret: ${secret}'`
  io.stdout.write(
    `
A demo key was issued; its secret is not shown again. Paste:

  ${curl} '${apiUrl}/projects?status=LIVE&sort=most_funded&limit=3'
  ${curl} '${apiUrl}/stats'

Pledges keep coming in. Ctrl-C stops the service. The next start continues from here.
`,
  )
}
