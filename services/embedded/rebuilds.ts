/**
 * Rebuilds of an embedded model, in the process that holds it: ClickHouse's files belong to one process.
 *
 * A rebuild that a kill or a stop of the process cut off goes on with `resume`; one that failed or was interrupted by hand
 * waits to be asked for again.
 */
import type { Logger } from 'pino'
import { createRebuildDesk, type LocalDesk } from '../rebuild/desk.ts'
import { runRebuild } from '../rebuild/rebuild.ts'
import { isCommitted, isWorking } from '../rebuild/rebuild-log.ts'
import type { Config } from '../shared/config.ts'
import type { History } from '../shared/event-log/history.ts'
import { openJournalHistory } from '../shared/event-log/journal/history.ts'
import type { DataDirectory } from './data-directory.ts'
import { type EmbeddedModel, liveConsumer } from './model.ts'

export type EmbeddedRebuilds = LocalDesk & {
  /** Goes on, in the background, with what was cut off; resolves once it is under way. */
  resume(): Promise<void>
}

export interface EmbeddedRebuildsDependencies {
  model: EmbeddedModel
  directory: DataDirectory
  config: Config
  logger: Logger
}

/** What the rebuild log says of one that a service left to the next. */
export const serviceStopped = 'the service was stopped, and goes on with it when it is started again'

export function createEmbeddedRebuilds({
  model,
  directory,
  config,
  logger,
}: EmbeddedRebuildsDependencies): EmbeddedRebuilds {
  const { tables, databases, secrets } = model
  const withHistory = <T>(work: (history: History) => Promise<T>) =>
    withJournalHistory(directory.journal, work)
  let runs = 0
  const desk = createRebuildDesk({
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
              backerKey: secrets.backerKey,
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
        logger.warn({ run, error: error instanceof Error ? error.message : String(error) }, 'a rebuild ended')
        throw error
      }
    },
  })

  return {
    ...desk,

    async resume() {
      const latest = await desk.report()
      if (!latest || !isWorking(latest.state)) return
      const { id, phase, isAborting, detail } = latest.state
      if (isAborting && !isCommitted(latest.state)) {
        logger.info({ id, phase }, 'gives up a rebuild, as was asked before the process ended')
        await desk.abort()
      } else if (detail.failure === null || detail.failure === serviceStopped) {
        logger.info({ id, phase }, 'goes on with the rebuild that was cut off')
        await desk.start(detail.request)
      }
    },
  }
}

async function withJournalHistory<T>(path: string, work: (history: History) => Promise<T>): Promise<T> {
  const history = await openJournalHistory(path, { live: liveConsumer })
  try {
    return await work(history)
  } finally {
    await history.close()
  }
}
