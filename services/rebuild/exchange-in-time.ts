/** The exchange as a step of a rebuild: tried again where it took too long, and told from one that was cut off. */
import type { EventReader } from '../shared/event-log/port.ts'
import { readClock } from './differences.ts'
import { exchangeGenerations, HoldLost, stampChanged } from './exchange.ts'
import { countLive, exchange, untilNoExchangeRuns } from './generation.ts'
import { catchUp, ingestToEnd } from './reading.ts'
import { verifyTouched } from './verification.ts'
import { folderSettings, type Work } from './work.ts'

const attemptsMax = 5

/** Throws what the last attempt threw. */
export async function exchangeInTime(work: Work, reader: EventReader): Promise<void> {
  const { databases, history, log, model, config, logger } = work
  for (let attempt = 1; ; attempt++) {
    // Above what an attempt before this one has stamped.
    await model.folder.takeOver()
    model.takeTouched()
    await catchUp(work, reader)
    const { added = 0, different = 0 } = log.detail.differences ?? {}
    const areMany = added + different > (work.stampedUnderHoldMax ?? 10_000)
    const unstampedSince = areMany ? await readClock(work.tables) : null
    try {
      const report = await exchangeGenerations(
        { ...work, settings: folderSettings(config) },
        {
          areManyChanged: unstampedSince !== null,
          async catchUp() {
            await ingestToEnd(work, reader, 'shadow')
            await model.folder.fold()
            await verifyTouched(work)
          },
          async beforeExchange(tableIds) {
            work.signal.throwIfAborted()
            const positions = await history.livePositions()
            await log.enter('exchanging', { tableIds, positions, unstampedSince })
          },
        },
      )
      logger.info({ databases, ...report }, 'the generations are exchanged')
      return
    } catch (error) {
      if (!(error instanceof HoldLost) || attempt === attemptsMax || (await isExchanged(work))) throw error
      logger.warn({ error: error.message, attempt }, 'the exchange is tried again')
    }
  }
}

/** After an exchange that changed many rows. */
export async function stampWhatChanged(work: Work): Promise<void> {
  const { log, config, logger } = work
  for (let attempt = 1; log.detail.unstampedSince !== null; attempt++) {
    try {
      await stampChanged({ ...work, settings: folderSettings(config) }, log.detail.unstampedSince)
      log.note({ unstampedSince: null })
    } catch (error) {
      if (!(error instanceof HoldLost) || attempt === attemptsMax) throw error
      logger.warn({ error: error.message, attempt }, 'the rows that changed are stamped again')
    }
  }
}

/** Whether the rebuilt generation is the live one. An exchange that was cut off in the middle is completed. */
export async function isExchanged({ tables, hastyTables, databases, log, sleep }: Work): Promise<boolean> {
  const { tableIds } = log.detail
  if (!tableIds) return false
  // Of a run that was killed, the statement may still be at it.
  await untilNoExchangeRuns(tables, databases, sleep)
  if ((await countLive(tables, databases, tableIds)) === 0) return false
  await exchange(hastyTables, databases, tableIds, sleep)
  return true
}
