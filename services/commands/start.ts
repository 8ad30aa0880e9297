/**
 * `npm start`: the embedded service with something to see.
 *
 * On a new data directory it loads the demo platform, issues a demo key and prints curl lines to paste; then a trickle
 * of pledges keeps the numbers moving. With --no-demo it starts as it is.
 */

import { randomBytes } from 'node:crypto'
import closeWithGrace from 'close-with-grace'
import { appendDemo, runTrickle } from '../demo/load-demo.ts'
import {
  type DataDirectory,
  type Demo,
  openDataDirectory,
  readDemo,
  writeDemo,
} from '../embedded/data-directory.ts'
import { type EmbeddedService, startEmbeddedService } from '../embedded/service.ts'
import { issueKey } from '../shared/api-keys.ts'
import { readConfig } from '../shared/config.ts'
import { createLogger } from '../shared/logger.ts'
import { createProgress } from '../shared/progress.ts'
import {
  type Command,
  defaultDataDirectory,
  type Io,
  messageOf,
  readArguments,
  wholeNumber,
} from './command.ts'

const demoSeed = 20_180_101
const trickleMs = 1_000
const closeMsMax = 5_000
const portBounds = { min: 0, max: 65_535 }

export const startCommand: Command = {
  usage: `usage: pledgeview start [--port N] [--ops-port N] [--data-dir D] [--no-demo]

  --port N       public API (default 8080; 0 takes a free one)
  --ops-port N   health, readiness, metrics, status (default 9090; 0 takes a free one)
  --data-dir D   where everything is kept (default ${defaultDataDirectory})
  --no-demo      start empty, without demo events, key or trickle`,

  async run(args, io) {
    const { values } = readArguments({
      args,
      options: {
        port: { type: 'string', default: '8080' },
        'ops-port': { type: 'string', default: '9090' },
        'data-dir': { type: 'string', default: defaultDataDirectory },
        'no-demo': { type: 'boolean', default: false },
      },
    })
    const ports = {
      port: wholeNumber('port', values.port, portBounds),
      opsPort: wholeNumber('ops-port', values['ops-port'], portBounds),
    }
    const config = readConfig({
      PLEDGEVIEW_LOG_LEVEL: process.stderr.isTTY ? 'warn' : 'info',
      ...process.env,
    })
    const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
    const directory = openDataDirectory(values['data-dir'])
    const service = await startEmbeddedService({ directory, config, ...ports, logger })

    const stop = new AbortController()
    const closed = new Promise<void>(resolve => {
      closeWithGrace({ delay: closeMsMax, logger: false }, async ({ err }) => {
        if (err) logger.fatal({ error: messageOf(err), stack: err.stack }, 'closing after a failure')
        stop.abort()
        await service.close()
        resolve()
      })
    })
    service.model.stopped.then(error => {
      if (error) io.stderr.write(stoppedText(error))
    })

    try {
      const demo = values['no-demo'] ? undefined : await demoOf(service, directory)
      const isNew = demo !== undefined && !demo.is_loaded
      if (isNew) await loadDemo(service, directory, demo, io)
      io.stdout.write(`Pledgeview serves ${service.apiUrl} (ops: ${service.opsUrl})\n`)
      if (isNew) await showDemo(service, io)
      else io.stdout.write(keyHint(values['data-dir']))
      if (demo) {
        runTrickle({
          writer: service.model.writer,
          seed: demo.seed,
          loadedAt: demo.now_ms,
          now: Date.now,
          intervalMs: trickleMs,
          signal: stop.signal,
        }).catch((error: unknown) => logger.error({ error: messageOf(error) }, 'the demo trickle ended'))
      }
    } catch (error) {
      // Interrupted on the way: what failed is what the closing took away.
      if (!stop.signal.aborted) {
        await service.close()
        throw error
      }
    }
    await closed
    return 0
  },
}

function stoppedText(error: Error): string {
  return `
The projector stopped: ${error.message}
The API goes on serving what is there. A key that is revoked meanwhile stays valid until the projector runs again.
`
}

function keyHint(dataDirectory: string): string {
  const where = dataDirectory === defaultDataDirectory ? '' : ` --data-dir ${dataDirectory}`
  const who = '--account me --name Me --url https://example.com --email me@example.com'
  return `For a key: npm run --silent pledgeview -- keys issue ${who}${where}\n`
}

/** The demo of the directory: the one that it has, a new one where its journal is empty, else none. */
async function demoOf({ model }: EmbeddedService, directory: DataDirectory): Promise<Demo | undefined> {
  const lag = await model.projector.lag()
  const isEmpty = lag.every(({ end }) => end <= 1)
  return (
    readDemo(directory) ?? (isEmpty ? { seed: demoSeed, now_ms: Date.now(), is_loaded: false } : undefined)
  )
}

async function loadDemo(
  { model }: EmbeddedService,
  directory: DataDirectory,
  demo: Demo,
  io: Io,
): Promise<void> {
  io.stdout.write('Loading the demo platform.\n')
  writeDemo(directory, demo)
  const making = createProgress({ stream: io.stderr, label: 'making events' })
  const { appended } = await appendDemo({
    writer: model.writer,
    seed: demo.seed,
    now: demo.now_ms,
    onProgress: ({ events }) => making.update(events),
  })
  making.done()
  const projecting = createProgress({ stream: io.stderr, label: 'projecting', total: appended })
  await model.whenDrained(waiting => projecting.update(Math.max(0, appended - waiting)))
  projecting.done()
  writeDemo(directory, { ...demo, is_loaded: true })
}

async function showDemo({ model, apiUrl }: EmbeddedService, io: Io): Promise<void> {
  const { key, secret } = await issueKey(
    {
      directory: model.keys,
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

Pledges keep coming in. Ctrl-C stops; the next start goes on from here.
`,
  )
}
