/**
 * Rebuilds of an embedded model. They run in the process that holds the model, because only one process can use ClickHouse's
 * files.
 *
 * `resume` continues a rebuild that was interrupted by a kill or a stop of the process. A rebuild that failed, or that a user
 * interrupted, waits until it is requested again.
 */
import type { Logger } from 'pino'
import { runRebuild } from '../rebuild/rebuild.ts'
import { createRebuildController, type LocalRebuildController } from '../rebuild/rebuild-controller.ts'
import { isCommitted, isWorking } from '../rebuild/rebuild-log.ts'
import type { Config } from '../shared/config.ts'
import type { History } from '../shared/event-log/history.ts'
import { openJournalHistory } from '../shared/event-log/journal/history.ts'
import { messageOf } from '../shared/message-of.ts'
import type { DataDirectory } from './data-directory.ts'
import type { EmbeddedModel } from './model.ts'

export type EmbeddedRebuilds = LocalRebuildController & {
  /** Continues an interrupted rebuild in the background. Resolves once it is running. */
  resume(): Promise<void>
}

export interface EmbeddedRebuildsDependencies {
  model: EmbeddedModel
  directory: DataDirectory
  config: Config
  logger: Logger
}

/** The failure in the rebuild log if the service was stopped during a rebuild. The next service continues it. */
export const serviceStopped = 'the service was stopped; it continues the rebuild when it is started again'
// The log of a running system may still have the text that earlier versions wrote.
const serviceStoppedBefore = 'the service was stopped, and goes on with it when it is started again'

export function createEmbeddedRebuilds({
  model,
  directory,
  config,
  logger,
}: EmbeddedRebuildsDependencies): EmbeddedRebuilds {
  const { tables, databases } = model
  const withHistory = <T>(work: (history: History) => Promise<T>) =>
    withJournalHistory(directory.journal, work)
  let runs = 0
  const controller = createRebuildController({
    tables,
    databases,
    isAlone: true,
    withHistory,
    async run(request, { onProgress, signal }) {
      const run = `${model.run}-rebuild-${++runs}`
      logger.info({ run, request }, 'a rebuild begins')
      try {
        const { id, detail } = await withHistory(history =>
          runRebuild(
            {
              tables,
              databases,
              history,
              config,
              hashBacker: model.hashBacker,
              run,
              isAlone: true,
              logger,
              onProgress,
              now: Date.now,
              monotonicMs: () => performance.now(),
              random: Math.random,
            },
            request,
            signal,
          ),
        )
        logger.info({ run, id, phaseMs: detail.phaseMs, records: detail.records }, 'the rebuild is done')
      } catch (error) {
        logger.warn({ run, error: messageOf(error) }, 'a rebuild ended')
        throw error
      }
    },
  })

  return {
    ...controller,

    async resume() {
      const latest = await controller.report()
      if (!latest || !isWorking(latest.state)) return
      const { id, phase, isAborting, detail } = latest.state
      if (isAborting && !isCommitted(latest.state)) {
        logger.info({ id, phase }, 'gives up a rebuild, as requested before the process ended')
        await controller.abort()
      } else if ([null, serviceStopped, serviceStoppedBefore].includes(detail.failure)) {
        logger.info({ id, phase }, 'continues the rebuild that was interrupted')
        await controller.start(detail.request)
      }
    },
  }
}

async function withJournalHistory<T>(path: string, work: (history: History) => Promise<T>): Promise<T> {
  const history = await openJournalHistory(path)
  try {
    return await work(history)
  } finally {
    await history.close()
  }
}
