/** The services of the distributed form, each a process that runs until it is interrupted. */
import closeWithGrace from 'close-with-grace'
import type { Logger } from 'pino'
import type { Process } from '../distributed/serve.ts'
import { closing } from '../runtime/async/closing.ts'
import { readConfig } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import { openTraces } from '../runtime/traces.ts'
import { type Command, type Io, readArguments } from './command.ts'
import type { Help } from './help.ts'

/** A supervisor has to wait for longer than this before it kills the process. */
export const closeMsMax = 15_000

const settings = 'The settings come from the environment (deploy/pledgeview.env.example).'

export const projectorCommand = serviceCommand(
  {
    call: 'projector',
    does:
      'Projects the topics of a Kafka cluster into the tables of a ClickHouse server, until it is interrupted. Start as many ' +
      `as you like: they share the partitions. ${settings}`,
    examples: ['projector'],
    cost: 'Memory for two batches (PLEDGEVIEW_BATCH_BYTES_MAX) and what is fetched ahead. An interrupt ends it within 15 s, without loss.',
  },
  async () => (await import('../distributed/projector.ts')).runProjectorProcess,
)

export const queryCommand = serviceCommand(
  {
    call: 'query',
    does:
      'Serves the API from the tables of a ClickHouse server, until it is interrupted. Start as many as you like behind a ' +
      `load balancer. ${settings}`,
    examples: ['query'],
    cost: 'Caches and the list index take memory: see PLEDGEVIEW_CACHE_BYTES_MAX and PLEDGEVIEW_LIST_INDEX_CAMPAIGNS_MAX.',
  },
  async () => (await import('../distributed/query.ts')).runQueryProcess,
)

export const portalCommand = serviceCommand(
  {
    call: 'portal',
    does:
      'Serves the developer portal from Kafka, ClickHouse and Redis, until it is interrupted. Start as many as you like behind a ' +
      `load balancer. ${settings}`,
    examples: ['portal'],
    cost: 'Little memory: the accounts stay in the tables.',
  },
  async () => (await import('../distributed/portal.ts')).runPortalProcess,
)

/** The code of the process is loaded when it is called. Once it is interrupted, it has `closeMsMax` to end. */
function serviceCommand(help: Help, load: () => Promise<(given: Process) => Promise<void>>): Command {
  return {
    help,
    async run(args: string[], io: Io) {
      readArguments(args, {})
      const config = readConfig(process.env)
      const logger = createLogger(config.PLEDGEVIEW_LOG_LEVEL)
      const say = (text: string) => void io.stdout.write(`${text}\n`)
      return untilInterrupted(help.call, logger, async signal => {
        const run = await load()
        await run({ config, logger, signal, say })
      })
    },
  }
}

// After a fault in native code the same instruction would run, and fail, again and again: such a signal has to end the process. And a
// process that has nothing left to do although its work has not ended has failed.
const skip = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'beforeExit'] as const

/**
 * Resolves with the exit code. A failure of the work is thrown, or logged if it was interrupted before. A failure elsewhere in the
 * process ends the process.
 */
export async function untilInterrupted(
  service: string,
  logger: Logger,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  // A service goes on if what it prints cannot be written: its reader has gone, or the disk is full.
  process.stdout.removeAllListeners('error').on('error', () => {})
  const stop = new AbortController()
  const running = closing(async open => {
    open({ close: await openTraces(service) })
    await work(stop.signal)
  }).catch((error: unknown) => {
    // It was interrupted while it waited for something, and has nothing to close.
    if (!stop.signal.aborted || error !== stop.signal.reason) throw error
  })
  const grace = closeWithGrace({ delay: closeMsMax, logger: false, skip: [...skip] }, async ({ err }) => {
    if (err) logger.fatal({ error: messageOf(err), stack: err.stack }, 'closing after a failure')
    stop.abort()
    await running.catch((error: unknown) => {
      logger.error({ error: messageOf(error) }, 'it could not be closed cleanly')
      throw error
    })
  })
  try {
    await running
    return 0
  } finally {
    grace.uninstall()
  }
}
