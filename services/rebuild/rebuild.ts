/**
 * A rebuild: reads the whole history into another generation of the tables, holds it against the live one, exchanges the
 * two, and reads on to where the live one was. The live model is served and projected all the time.
 *
 * Promises (beside those of the exchange):
 * - it can be killed at any point and goes on where it was: its place in the log is committed after the rows, and what has
 *   been done is in the rebuild log before the next thing begins;
 * - nothing is exchanged that does not say what its ledger says, or that knows less than the live model does;
 * - until the exchange, giving up leaves the live generation as if nothing had been.
 * How it fails: it throws the reason, and the rebuild log has it. What can pass is tried again for `retryMsMax`.
 */
import { projectorSettings } from '../projector/service.ts'
import { sleep } from '../projector/sleep.ts'
import type { EventReader } from '../shared/event-log/port.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { claim } from './claim.ts'
import { giveUp } from './control.ts'
import { readClock, readDifferences } from './differences.ts'
import { checkDisk, estimateDisk } from './disk.ts'
import { releaseLeftHold } from './exchange.ts'
import { exchangeInTime, isExchanged, stampWhatChanged } from './exchange-in-time.ts'
import { dropShadow, makeShadow } from './generation.ts'
import { patientTables } from './patient-tables.ts'
import { catchUp, ingestToEnd, readFiles } from './reading.ts'
import {
  consumerOf,
  isWorking,
  latestRebuild,
  type RebuildDetail,
  type RebuildRequest,
} from './rebuild-log.ts'
import { createShadowModel } from './shadow-model.ts'
import { verifyAll } from './verification.ts'
import { enter, folderSettings, isBack, type RebuildDependencies, type Work } from './work.ts'
import { createWorkLog } from './work-log.ts'

export interface RebuildResult {
  id: string
  detail: RebuildDetail
}

/** Somebody asked for its end; nothing is left of it. */
export class RebuildAborted extends Error {
  override name = 'RebuildAborted'
}

/**
 * Begins the rebuild or goes on with the one that is open, and carries it through. Throws `RebuildInProgress`,
 * `RebuildRefused`, `VerificationFailed`, `RebuildAborted`, the signal's reason, or what log and tables throw.
 */
export async function runRebuild(
  dependencies: RebuildDependencies,
  request: RebuildRequest,
  signal: AbortSignal,
): Promise<RebuildResult> {
  const { databases, config, run, monotonicMs, onProgress, logger } = dependencies
  const onRetry = (error: Error) => logger.warn({ error: error.message }, 'trying again')
  const tables = patientTables(dependencies.tables, {
    retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX,
    monotonicMs,
    sleep,
    onRetry,
  })
  await checkBeforehand(tables, databases, request)
  const state = await claim({ ...dependencies, tables, sleep }, request)
  const aborting = new AbortController()
  const onAbort = () => aborting.abort(new RebuildAborted('the rebuild was given up'))
  const log = createWorkLog({ tables, databases, state, onAbort, onProgress, monotonicMs })
  const model = createShadowModel({
    ...dependencies,
    projectorSettings: projectorSettings(config),
    folderSettings: folderSettings(config),
    sleep,
    onRetry,
    onRecords({ records, rejects }) {
      log.note({ records: log.detail.records + records, rejects: log.detail.rejects + rejects })
    },
  })
  const work: Work = {
    ...dependencies,
    tables,
    hastyTables: dependencies.tables,
    log,
    model,
    sleep,
    signal: AbortSignal.any([signal, aborting.signal]),
  }
  try {
    await carryThrough(work)
    await log.close()
    return { id: log.id, detail: log.detail }
  } catch (error) {
    const isAborted = aborting.signal.aborted && !signal.aborted
    await log.close(isAborted ? undefined : messageOf(error))
    if (isAborted) await giveUp(work, { id: log.id, run, detail: log.detail })
    throw error
  }
}

async function carryThrough(work: Work): Promise<void> {
  const { log, history, tables, databases, run } = work
  const { request } = log.detail
  const consumer = consumerOf(log.id)
  const wasExchanged = await isExchanged(work)
  await releaseLeftHold(tables, databases, run)
  // What files held that were refused half way may have been wrong before, too: then all begins anew.
  if (!log.isPast('reading files')) await prepare(work, consumer)
  // A program that was upgraded meanwhile, or since the generation before was live, has tables of another form.
  else if (!wasExchanged) await makeShadow(tables, databases)
  if (request.files.length > 0 && !log.isPast('reading files')) await readFiles(work)
  const reader = await history.open(consumer)
  try {
    if (!wasExchanged) {
      await build(work, reader)
      if (request.isDry) return await endDry(work, consumer)
      await exchangeInTime(work, reader)
    }
    // What the live projectors wrote in the moment of the exchange may be in the generation before.
    await log.enter('finishing')
    await ingestToEnd(work, reader, 'live')
    await stampWhatChanged(work)
  } finally {
    await reader.close()
  }
  await history.forget(consumer)
  await log.enter('rebuilt')
}

/** What would only leave an open rebuild behind is refused before there is one. */
async function checkBeforehand(tables: Tables, databases: Databases, request: RebuildRequest): Promise<void> {
  if (request.files.length > 0) {
    const { inspectArchive } = await import('./archive.ts')
    await inspectArchive(request.files)
  }
  const latest = await latestRebuild(tables, databases)
  if (request.kind === 'back' || request.ignoresDisk || (latest && isWorking(latest))) return
  checkDisk(await estimateDisk(tables, databases))
}

async function prepare(work: Work, consumer: string): Promise<void> {
  const { tables, databases, history, log } = work
  const { request, positions } = log.detail
  await enter(work, 'preparing')
  if (request.kind === 'back') {
    await makeShadow(tables, databases)
    await history.seek(consumer, positions ?? [])
    return
  }
  await dropShadow(tables, databases)
  await makeShadow(tables, databases)
  // One that begins anew has read on already.
  await history.forget(consumer)
  if (request.fromTime !== null) await history.seek(consumer, await history.positionsAt(request.fromTime))
}

/** Reads, folds, catches up and verifies, as far as that is not done. */
async function build(work: Work, reader: EventReader): Promise<void> {
  const { log, model } = work
  if (!log.isPast('reading log') && !isBack(work)) {
    await enter(work, 'reading log')
    await ingestToEnd(work, reader, 'shadow')
  }
  await model.folder.takeOver()
  if (!log.isPast('folding') && !isBack(work)) {
    await enter(work, 'folding')
    await model.folder.foldAll(({ done, of }) => {
      work.signal.throwIfAborted()
      log.progress({ done, of, unit: 'folds' })
    })
  }
  await enter(work, 'catching up')
  const since = await readClock(work.tables)
  await catchUp(work, reader)
  await enter(work, 'verifying')
  await verifyAll(work, reader)
  log.note({ differences: await readDifferences(work.tables, work.databases, since) })
}

async function endDry(work: Work, consumer: string): Promise<void> {
  const { tables, databases, history, log } = work
  await dropShadow(tables, databases)
  await history.forget(consumer)
  await log.enter('compared')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
