/**
 * The exchange: under a hold of the fold, the rebuilt generation is brought up to the end of the log, stamped, and put in
 * the place of the live one.
 *
 * Promises:
 * - what an answer of the live generation showed is in the rebuilt one: the hold is taken, the statements before it have
 *   ended, and only then the end of the log is looked at that the rebuilt one has to reach;
 * - a row with the same content keeps its `updated_at`; a row that changed becomes visible within the commit horizon of its
 *   stamp, or is in doubt for the folder that comes next, which stamps it anew;
 * - a kill leaves either generation whole: the exchange is one statement, and what is left of one that ClickHouse itself
 *   did not survive is completed by `completeExchange`.
 */
import { readFileSync } from 'node:fs'
import { SupersededFolder } from '../projector/fold-epochs.ts'
import { holdMsMax, holdName, isHold, releaseName } from '../projector/fold-hold.ts'
import {
  appendFoldStatement,
  contentColumns,
  epochHoldersStatement,
  fill,
  type Tenure,
  takeEpochStatement,
} from '../projector/fold-statements.ts'
import { createFolder, type Folder, type FolderSettings } from '../projector/folder.ts'
import { type Sleep, sleep } from '../projector/sleep.ts'
import { nameDatabases } from '../shared/tables/migrate.ts'
import type { Databases, Statement, Tables } from '../shared/tables/port.ts'
import { countLive, exchange, readTableIds, shadowOf, type TableIds, untilNoFoldRuns } from './generation.ts'
import { latestRebuild } from './rebuild-log.ts'

export interface ExchangeDependencies {
  tables: Tables
  /** The same, such that do not try again by themselves. */
  hastyTables: Tables
  databases: Databases
  /** Names this run of the rebuild; unique. */
  run: string
  settings: FolderSettings
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
}

/** What there is to do while nobody folds. */
export interface WhileHeld {
  /** Whether the rows that changed are too many to be stamped under the hold: then `stampChanged` has to follow. */
  areManyChanged: boolean
  /** Brings the rebuilt generation up to the end of the log, folded and verified. */
  catchUp(): Promise<void>
  /** Keeps what is needed to go on from here: once it has, the exchange may have happened. */
  beforeExchange(rebuilt: TableIds): Promise<void>
}

export interface ExchangeReport {
  /** How long nobody folded, ms. */
  heldMs: number
  /** From the stamp of changed rows to their visibility, ms. */
  stampedMs: number
}

/** The hold lasted too long to be sure of it, or was lost. Nothing was exchanged; another attempt may be made. */
export class HoldLost extends Error {
  override name = 'HoldLost'
}

// The exchange begins within half of the hold, or not at all.
const exchangeMsMax = holdMsMax / 2
// So many that one ends in time, with 400,000 campaigns that all changed.
const stampPieces = 16
// Above every number that the folder's own statements of this epoch get.
const stampCounter = 2n ** 31n

/** Throws `HoldLost`, and what the work or ClickHouse throw; then the hold is released and the live generation is as it was. */
export async function exchangeGenerations(
  dependencies: ExchangeDependencies,
  work: WhileHeld,
): Promise<ExchangeReport> {
  const { tables, databases, settings, monotonicMs } = dependencies
  const shadow = shadowOf(databases)
  const takenAt = monotonicMs()
  const tenure = await holdFold(dependencies)
  let isBegun = false
  try {
    await work.catchUp()
    const stampedAt = monotonicMs()
    for (const statement of stampStatements(databases, tenure, work)) await tables.run(statement)
    // What kept its stamp is certain; what comes after is certain once the exchange was seen in time.
    await confirm(dependencies, tenure, stampCounter + 2n)
    const rebuilt = await readTableIds(tables, shadow)
    await work.beforeExchange(rebuilt)
    if (monotonicMs() - takenAt > exchangeMsMax || !(await holds(dependencies, tenure))) {
      throw new HoldLost(`the tables could not be exchanged within ${exchangeMsMax} ms`)
    }
    isBegun = true
    await exchange(dependencies.hastyTables, databases, rebuilt, dependencies.sleep)
    isBegun = false
    const stampedMs = monotonicMs() - stampedAt
    if (stampedMs <= settings.horizonMs) await confirm(dependencies, tenure, stampCounter + 4n)
    await release(dependencies, { isSettled: true })
    return { heldMs: monotonicMs() - takenAt, stampedMs }
  } catch (error) {
    // Of what is half done nobody may fold: then the hold ends by itself, and who comes next completes it.
    if (!isBegun) await release(dependencies, { isSettled: false })
    throw error
  }
}

/**
 * Where an exchange was begun and is not whole, makes it whole; else changes nothing. For whoever folds after a hold that
 * nobody released.
 */
export async function completeExchange(tables: Tables, databases: Databases): Promise<void> {
  const state = await latestRebuild(tables, databases)
  if (state?.phase !== 'exchanging' || !state.detail.tableIds) return
  const live = await countLive(tables, databases, state.detail.tableIds)
  if (live > 0) await exchange(tables, databases, state.detail.tableIds, sleep)
}

/** Ends a hold that a run before this one was killed under, so that nobody waits for its end. After `completeExchange`. */
export async function releaseLeftHold(tables: Tables, databases: Databases, run: string): Promise<void> {
  const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
  if (holders.some(({ holder }) => isHold(holder))) {
    await tables.run(takeEpochStatement(databases, releaseName(run, { isSettled: false })))
  }
}

/** The highest epoch that was taken in either generation. */
export async function highestEpoch(tables: Tables, databases: Databases): Promise<bigint> {
  const [row] = await tables.rows<{ epoch: string }>({
    query: `SELECT toString(greatest(
              (SELECT max(epoch) FROM ${databases.model}.fold_epochs),
              (SELECT max(epoch) FROM ${shadowOf(databases).model}.fold_epochs))) AS epoch`,
  })
  return BigInt(row?.epoch ?? '0')
}

function liveFolder({ tables, databases, run, settings, ...rest }: ExchangeDependencies): Folder {
  return createFolder({
    ...rest,
    tables,
    databases,
    holder: holdName(run),
    settings,
    // A hold of a run that was killed is no reason to wait: no two rebuilds are at it.
    respectsHold: () => false,
    settle: () => untilNoFoldRuns(tables, databases, { msMax: 2 * settings.horizonMs, sleep: rest.sleep }),
    epochFloor: () => highestEpoch(tables, databases),
  })
}

/**
 * After an exchange that changed many rows: stamps them, under another hold. `exchangedAt`: ClickHouse's clock (text)
 * before the exchange. Can be repeated. Throws `HoldLost` where not all of it was done.
 */
export async function stampChanged(dependencies: ExchangeDependencies, exchangedAt: string): Promise<void> {
  const { tables, databases, settings } = dependencies
  const msMax = settings.horizonMs / 2
  const tenure = await holdFold(dependencies)
  try {
    for (let piece = 0; piece < stampPieces; piece++) {
      const id = (tenure.epoch << 32n) + stampCounter + BigInt(piece)
      const step = { tenure, foldId: id, pieces: stampPieces, piece, msMax }
      await tables.run({
        query: fill(files.changed, databases, step).replaceAll('${previous}', shadowOf(databases).model),
        query_params: {
          holder: tenure.holder,
          fold_id: id.toString(),
          pieces: stampPieces,
          piece,
          exchanged_at: exchangedAt,
        },
      })
      await confirm(dependencies, tenure, stampCounter + BigInt(piece))
    }
    if (!(await holds(dependencies, tenure))) throw new HoldLost('the fold was taken while rows were stamped')
    await release(dependencies, { isSettled: true })
  } catch (error) {
    await release(dependencies, { isSettled: false })
    throw error
  }
}

const files = {
  stamp: readSql('stamp'),
  departures: readSql('stamp-departures'),
  changed: readSql('stamp-changed'),
}

function stampStatements(
  databases: Databases,
  tenure: Tenure,
  { areManyChanged }: Pick<WhileHeld, 'areManyChanged'>,
): Statement[] {
  const shadow = shadowOf(databases)
  const query_params = {
    also_changed: !areManyChanged,
    kept_id: foldId(tenure, stampCounter + 1n),
    changed_id: foldId(tenure, stampCounter + 3n),
  }
  return [files.stamp, files.departures].map(sql => ({
    query: nameDatabases(sql, shadow)
      .replaceAll('${live}', databases.model)
      .replaceAll('${columns}', contentColumns.join(', '))
      .replaceAll('${row_columns}', contentColumns.map(name => `row.${name}`).join(', ')),
    query_params,
  }))
}

function foldId({ epoch }: Tenure, counter: bigint): string {
  return ((epoch << 32n) + counter).toString()
}

/** Records, under the hold, that no row up to this number is in doubt. */
async function confirm(
  { tables, databases }: ExchangeDependencies,
  tenure: Tenure,
  counter: bigint,
): Promise<void> {
  const step = { tenure, foldId: (tenure.epoch << 32n) + counter, pieces: 1, piece: 0, msMax: 10_000 }
  await tables.run(appendFoldStatement(databases, step, { folded: {}, campaigns: 0, elapsedMs: 0 }))
}

async function holds({ tables, databases }: ExchangeDependencies, tenure: Tenure): Promise<boolean> {
  const [row] = await tables.rows<{ holds: number }>({
    query: `SELECT (SELECT max((epoch, holder)) FROM ${databases.model}.fold_epochs)
              = ({epoch:UInt64}, {holder:String}) AS holds`,
    query_params: { epoch: tenure.epoch.toString(), holder: tenure.holder },
  })
  return Number(row?.holds) === 1
}

/** From here on nobody else folds, and no fold runs. Throws `HoldLost` where somebody was quicker. */
async function holdFold(dependencies: ExchangeDependencies): Promise<Tenure> {
  try {
    return await liveFolder(dependencies).takeOver()
  } catch (cause) {
    if (cause instanceof SupersededFolder) throw new HoldLost(cause.message, { cause })
    await release(dependencies, { isSettled: false })
    throw cause
  }
}

/** Lets others fold. Where that fails, the hold ends by itself. */
async function release(
  { tables, databases, run }: ExchangeDependencies,
  how: { isSettled: boolean },
): Promise<void> {
  await tables.run(takeEpochStatement(databases, releaseName(run, how))).catch(() => undefined)
}

function readSql(name: string): string {
  return readFileSync(new URL(`sql/${name}.sql`, import.meta.url), 'utf8')
}
