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
import type { Logger } from 'pino'
import { encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import { currencyDigits } from '../../contracts/events/currencies.ts'
import { projectorSettings } from '../projector/service.ts'
import { type Sleep, sleep } from '../projector/sleep.ts'
import type { Config } from '../shared/config.ts'
import type { History } from '../shared/event-log/history.ts'
import type { EventReader, PartitionLag, Position } from '../shared/event-log/port.ts'
import type { SchemaRegistry } from '../shared/schema-registry.ts'
import type { Databases, Tables } from '../shared/tables/port.ts'
import { claim } from './claim.ts'
import { giveUp } from './control.ts'
import { readClock, readDifferences } from './differences.ts'
import { checkDisk, estimateDisk } from './disk.ts'
import { exchangeGenerations, HoldLost, releaseLeftHold, stampChanged } from './exchange.ts'
import { countLive, dropShadow, exchange, makeShadow, shadowOf, untilNoExchangeRuns } from './generation.ts'
import { endsOf } from './ingest.ts'
import { patientTables } from './patient-tables.ts'
import {
  consumerOf,
  type RebuildDetail,
  type RebuildRequest,
  type RebuildState,
  type WorkPhase,
} from './rebuild-log.ts'
import { createShadowModel, type ShadowModel } from './shadow-model.ts'
import {
  type Knowledge,
  type Mismatch,
  missingKnowledge,
  rangesOf,
  stillMissing,
  verifyReadTables,
} from './verify.ts'
import { createWorkLog, type WorkLog } from './work-log.ts'

export interface RebuildDependencies {
  tables: Tables
  databases: Databases
  history: History
  config: Config
  /** 64 hex digits: the key of the backer hashes. */
  backerKey: string
  schemaRegistry?: SchemaRegistry | undefined
  /** Frames archived events as the log's are framed. Default: with the fixed schema ids. */
  encode?: StateEncoder
  /** Names this run; unique. */
  run: string
  /** Whether no other process can be at work on these tables. */
  isAlone: boolean
  /** More changed rows than this are stamped after the exchange: nobody folds while they are. Default: 10,000. */
  stampedUnderHoldMax?: number
  logger: Logger
  onProgress: (state: RebuildState) => void
  /** Unix ms. */
  now: () => number
  monotonicMs: () => number
  random: () => number
}

export interface RebuildResult {
  id: string
  detail: RebuildDetail
}

/** The rebuilt generation is not what it has to be. Nothing was exchanged. */
export class VerificationFailed extends Error {
  override name = 'VerificationFailed'
  readonly mismatches: readonly Mismatch[]

  constructor(message: string, mismatches: readonly Mismatch[]) {
    const lines = mismatches.slice(0, 10).map(({ place, reason }) => `\n  ${place} ${reason}`)
    super(`${message}${lines.join('')}`)
    this.mismatches = mismatches
  }
}

/** Somebody asked for its end; nothing is left of it. */
export class RebuildAborted extends Error {
  override name = 'RebuildAborted'
}

const exchangeAttemptsMax = 5
const catchUpRoundsMax = 100
// Once a round took no longer than this, the rest is for when nobody folds.
const catchUpMs = 2_000
const idsPerStatement = 2_000

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

interface Work extends RebuildDependencies {
  hastyTables: Tables
  log: WorkLog
  model: ShadowModel
  sleep: Sleep
  signal: AbortSignal
}

async function carryThrough(work: Work): Promise<void> {
  const { log, history, tables, databases, run } = work
  const { request } = log.detail
  const consumer = consumerOf(log.id)
  const wasExchanged = await isExchanged(work)
  await releaseLeftHold(tables, databases, run)
  // What files held that were refused half way may have been wrong before, too: then all begins anew.
  if (!log.isPast('reading files')) await prepare(work, consumer)
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

async function prepare(work: Work, consumer: string): Promise<void> {
  const { tables, databases, history, log } = work
  const { request, positions } = log.detail
  await enter(work, 'preparing')
  if (request.kind === 'back') {
    await history.seek(consumer, positions ?? [])
    return
  }
  await dropShadow(tables, databases)
  if (!request.ignoresDisk) checkDisk(await estimateDisk(tables, databases))
  await makeShadow(tables, databases)
  if (request.fromTime !== null) await history.seek(consumer, await history.positionsAt(request.fromTime))
}

async function readFiles(work: Work): Promise<void> {
  const { log, model, signal, encode = encodeState } = work
  await enter(work, 'reading files')
  const { openArchiveReader } = await import('./archive-reader.ts')
  const archive = await openArchiveReader(log.detail.request.files, { encode })
  try {
    const onLag = () => log.progress({ ...archive.progress(), unit: 'bytes' })
    await model.ingest({ reader: archive, target: archive.end, into: 'shadow', onLag }, signal)
  } finally {
    await archive.close()
  }
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
    await model.folder.foldAll(({ done, of }) => log.progress({ done, of, unit: 'folds' }))
  }
  await enter(work, 'catching up')
  const since = await readClock(work.tables)
  await catchUp(work, reader)
  await enter(work, 'verifying')
  await verify(work, reader)
  log.note({ differences: await readDifferences(work.tables, work.databases, since) })
}

/** Begins a phase that may still be given up. */
async function enter({ log, signal }: Work, phase: WorkPhase): Promise<void> {
  signal.throwIfAborted()
  await log.enter(phase)
}

async function catchUp(work: Work, reader: EventReader): Promise<void> {
  const { model, monotonicMs } = work
  for (let round = 0; round < catchUpRoundsMax; round++) {
    const startedAt = monotonicMs()
    await ingestToEnd(work, reader, 'shadow')
    await model.folder.fold()
    if (monotonicMs() - startedAt < catchUpMs) return
  }
}

/** Everything, once, while nothing else happens to the shadow. Throws `VerificationFailed`. */
async function verify(work: Work, reader: EventReader): Promise<void> {
  const { tables, databases, log, model, logger, signal } = work
  const shadow = shadowOf(databases)
  const generations = { live: databases, rebuilt: shadow }
  const ranges = await rangesOf(tables, shadow)
  const missing: Knowledge[] = []
  model.takeTouched()
  for (const [done, range] of ranges.entries()) {
    signal.throwIfAborted()
    log.progress({ done, of: ranges.length, unit: 'ranges' })
    if (!isBack(work)) mustFit(await verifyReadTables(tables, shadow, range, folderSettings(work.config)))
    missing.push(...(await missingKnowledge(tables, generations, range, { alsoKeys: done === 0 })))
  }
  // The live projectors have gone on meanwhile: only what is missing once this one has, too, is missing.
  if (missing.length > 0) await catchUp(work, reader)
  const lost = await stillMissing(tables, generations, missing)
  if (lost.length > 0) {
    const message = `the live model knows more than the history that was read, in ${lost.length} places`
    if (!log.detail.request.acceptsLoss) {
      throw new VerificationFailed(
        `${message}; nothing was exchanged. Where that is meant to be, run it again with --accept-loss. The first:`,
        lost,
      )
    }
    logger.warn({ places: lost.length, first: lost[0] }, message)
  }
}

function mustFit(mismatches: readonly Mismatch[]): void {
  if (mismatches.length === 0) return
  throw new VerificationFailed(
    'the rebuilt read tables do not say what their ledger says; nothing was exchanged. The first:',
    mismatches,
  )
}

async function exchangeInTime(work: Work, reader: EventReader): Promise<void> {
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
      if (!(error instanceof HoldLost) || attempt === exchangeAttemptsMax || (await isExchanged(work)))
        throw error
      logger.warn({ error: error.message, attempt }, 'the exchange is tried again')
    }
  }
}

/** After an exchange that changed many rows. */
async function stampWhatChanged(work: Work): Promise<void> {
  const { log, config, logger } = work
  for (let attempt = 1; log.detail.unstampedSince !== null; attempt++) {
    try {
      await stampChanged({ ...work, settings: folderSettings(config) }, log.detail.unstampedSince)
      log.note({ unstampedSince: null })
    } catch (error) {
      if (!(error instanceof HoldLost) || attempt === exchangeAttemptsMax) throw error
      logger.warn({ error: error.message, attempt }, 'the rows that changed are stamped again')
    }
  }
}

/** The campaigns that were folded since everything was verified. */
async function verifyTouched(work: Work): Promise<void> {
  if (isBack(work)) return
  const { tables, databases, model, config } = work
  const touched = [...model.takeTouched()]
  for (let from = 0; from < touched.length; from += idsPerStatement) {
    const ids = touched.slice(from, from + idsPerStatement)
    mustFit(await verifyReadTables(tables, shadowOf(databases), { ids }, folderSettings(config)))
  }
}

/** Who goes back wants the generation before as it was, with whatever was wrong in it. */
function isBack({ log }: Work): boolean {
  return log.detail.request.kind === 'back'
}

/** Whether the rebuilt generation is the live one. An exchange that was cut off in the middle is completed. */
async function isExchanged({ tables, hastyTables, databases, log }: Work): Promise<boolean> {
  const { tableIds } = log.detail
  if (!tableIds) return false
  // Of a run that was killed, the statement may still be at it.
  await untilNoExchangeRuns(tables, databases, sleep)
  if ((await countLive(tables, databases, tableIds)) === 0) return false
  await exchange(hastyTables, databases, tableIds, sleep)
  return true
}

async function ingestToEnd(work: Work, reader: EventReader, into: 'shadow' | 'live'): Promise<void> {
  const { log, model, signal } = work
  const target = await endsOf(reader)
  const end = sumOf(target)
  const onLag = (lag: readonly PartitionLag[]) => {
    const at = sumOf(lag.map(({ topic, partition, committed }) => ({ topic, partition, next: committed })))
    if (log.detail.logStart === null) log.note({ logStart: at })
    const start = log.detail.logStart ?? at
    const lagRecords = lag.reduce((sum, { committed, end }) => sum + end - committed, 0)
    log.progress({ done: at - start, of: Math.max(end, at) - start, unit: 'records', lagRecords })
  }
  await model.ingest({ reader, target, into, onLag }, signal)
}

async function endDry(work: Work, consumer: string): Promise<void> {
  const { tables, databases, history, log } = work
  await dropShadow(tables, databases)
  await history.forget(consumer)
  await log.enter('compared')
}

/** What a fold is made with. */
export function folderSettings(config: Config) {
  return {
    horizonMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    settleMs: config.PLEDGEVIEW_COMMIT_HORIZON_MS,
    platformDigits: currencyDigits(config.PLEDGEVIEW_PLATFORM_CURRENCY) ?? 2,
    campaignsPerStatementMax: config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX,
  }
}

function sumOf(positions: readonly Position[]): number {
  return positions.reduce((sum, { next }) => sum + next, 0)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
