/**
 * The folder: follows the batch log and keeps the read tables a function of the ledger.
 *
 * One process folds at a time. It takes an epoch, and every statement carries that epoch as a condition, so a folder
 * that another has superseded writes nothing (sql/). Promises to pollers:
 * - a change is visible within the commit horizon of its stamp, or it is stamped anew: a fold gets half the horizon,
 *   is cancelled by ClickHouse beyond that, and what it may have written is stamped again in a later statement;
 * - until the stamps of a doubtful fold are renewed, nothing else is folded and no progress is recorded.
 * How it fails: it throws what ClickHouse said once its retries are used up; progress stays where it was recorded.
 */
import { type Databases, type Statement, type Tables, TablesError } from '../shared/tables/port.ts'
import { FoldHeld, SupersededFolder, takeEpoch } from './fold-epochs.ts'
import { isHold } from './fold-hold.ts'
import {
  appendFoldStatement,
  confirmedFoldStatement,
  epochHoldersStatement,
  type FoldedCampaigns,
  type FoldStep,
  foldCampaignsStatement,
  foldKeysStatement,
  knownCampaignsStatement,
  type Progress,
  pendingBatchesStatement,
  progressStatement,
  restampStatement,
  type Tenure,
} from './fold-statements.ts'
import type { Sleep } from './sleep.ts'

export interface FolderSettings {
  /** Commit horizon, ms: how long after its stamp a change may become visible. */
  horizonMs: number
  /** How long statements of an earlier holder may still run when this one takes over; 0 where they died with it. */
  settleMs: number
  /** Digits of the platform's currency (ISO 4217). */
  platformDigits: number
  /** Campaigns that one statement may look at; a fold of more is split. */
  campaignsPerStatementMax: number
}

export interface FolderDependencies {
  tables: Tables
  databases: Databases
  /** Names this run of this process; unique. */
  holder: string
  settings: FolderSettings
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
  /** As `takeEpoch` has them. Default: each hold is respected, and leaves nothing behind. */
  respectsHold?: (holder: string) => boolean
  afterHold?: () => Promise<void>
  /** Resolves when no statement of an earlier holder runs any more. Default: after `settleMs`. */
  settle?: () => Promise<void>
  /** Epochs are taken above this one. Default: 0. */
  epochFloor?: () => Promise<bigint>
  /**
   * The model's database that is served while this one is built. Rows keep its stamps, and none is stamped anew: nobody
   * reads them before the two are exchanged.
   */
  besides?: string | undefined
}

export interface FoldReport {
  campaigns: number
  keys: number
  elapsedMs: number
  /** When the oldest event of the folded batches entered the log, in ms since the epoch. */
  oldestAt: number
  statements: number
}

export interface Folder {
  /** Takes the next epoch and renews the stamps that an earlier holder left in doubt. Throws `FoldHeld`. */
  takeOver(): Promise<Tenure>
  /** Folds all batches that are pending; `undefined` where there is none. Throws `SupersededFolder`. */
  fold(): Promise<FoldReport | undefined>
  /** Folds every campaign that the ledger knows, and the keys. */
  foldAll(onProgress?: (done: FoldProgress) => void): Promise<FoldReport>
}

/** Statements that have ended, of those that are known to be needed. */
export interface FoldProgress {
  done: number
  of: number
}

interface PendingRow {
  projector: string
  sequence: number
  campaigns: number
  keys: number
  oldestAt: number
}

const attemptsMax = 6
const epochBits = 32n

export function createFolder(dependencies: FolderDependencies): Folder {
  const { tables, databases, holder, settings, monotonicMs, sleep, random, besides } = dependencies
  const { respectsHold = () => true, afterHold = async () => {} } = dependencies
  const { epochFloor = async () => 0n } = dependencies
  const { settle = () => sleep(settings.settleMs) } = dependencies
  const statementMsMax = settings.horizonMs / 2
  let tenure: Tenure | undefined
  let progress: Record<string, number> = {}
  let counter = 0n
  /** No row up to this fold_id is in doubt. */
  let confirmed = 0n
  /** A statement did not end in time, and the stamps of what it may have written are not renewed yet. */
  let inDoubt = false

  function nextStep(pieces: number, piece: number): FoldStep {
    if (!tenure) throw new SupersededFolder('takeOver has to come first')
    counter++
    const foldId = (tenure.epoch << epochBits) + counter
    return { tenure, foldId, pieces, piece, msMax: statementMsMax }
  }

  /** Runs a statement; true where it certainly ended within its time. */
  async function endedInTime(statement: Statement): Promise<boolean> {
    const startedAt = monotonicMs()
    try {
      await tables.run(statement)
      if (monotonicMs() - startedAt <= statementMsMax) return true
    } catch (error) {
      inDoubt = true
      if (!(error instanceof TablesError && error.retryable)) throw error
      // ClickHouse says that it ended a statement for its time; of any other failure it may not know that we gave up.
      if (error.type !== 'TIMEOUT_EXCEEDED') await sleep(settings.horizonMs - (monotonicMs() - startedAt))
    }
    inDoubt = true
    return false
  }

  /**
   * Runs a whole in pieces, a statement each. A piece that did not end in time is run again in smaller ones, once
   * `afterFailure` is done; what has ended stays done. A piece that fails in every size fails the whole.
   */
  async function inPieces(
    { pieces, splitInto }: { pieces: number; splitInto: number },
    statementOf: (step: FoldStep) => Statement,
    afterFailure: () => Promise<void>,
    onProgress: (done: FoldProgress) => void = () => {},
  ): Promise<number> {
    const left = Array.from({ length: pieces }, (_, piece) => ({ pieces, piece, failures: 0 }))
    let statements = 0
    for (let next = left.pop(); next; next = left.pop()) {
      if (await endedInTime(statementOf(nextStep(next.pieces, next.piece)))) {
        statements++
        onProgress({ done: statements, of: statements + left.length })
        continue
      }
      const failures = next.failures + 1
      if (failures === attemptsMax) {
        throw new TablesError(`a fold did not end within ${statementMsMax} ms, in ever smaller pieces`, {
          retryable: true,
        })
      }
      await backoff(failures)
      await afterFailure()
      for (let part = 0; part < splitInto; part++) {
        // Pieces are ranges, so the parts of one lie side by side.
        left.push({ pieces: next.pieces * splitInto, piece: next.piece * splitInto + part, failures })
      }
    }
    return statements
  }

  /** Renews the stamps of all rows in doubt, those of its own late tries included. */
  async function restamp(): Promise<void> {
    if (besides === undefined) {
      await inPieces(
        { pieces: 1, splitInto: 4 },
        step => restampStatement(databases, step, { after: confirmed, before: step.foldId }),
        async () => {},
      )
    }
    inDoubt = false
  }

  function foldKeys(): Promise<number> {
    return inPieces({ pieces: 1, splitInto: 1 }, step => foldKeysStatement(databases, step), restamp)
  }

  function foldCampaigns(
    campaigns: number,
    touched: FoldedCampaigns['touched'],
    onProgress?: (done: FoldProgress) => void,
  ): Promise<number> {
    const pieces = Math.max(1, Math.ceil(campaigns / settings.campaignsPerStatementMax))
    const folded = { touched, platformDigits: settings.platformDigits, stampsFrom: besides }
    return inPieces(
      { pieces, splitInto: 4 },
      step => foldCampaignsStatement(databases, step, folded),
      restamp,
      onProgress,
    )
  }

  /** What the batches bring that are not folded; `undefined` where there is none. */
  async function readPending() {
    const pending = await tables.rows<PendingRow>(pendingBatchesStatement(databases, progress))
    if (pending.length === 0) return undefined
    return {
      to: Object.fromEntries(pending.map(row => [row.projector, row.sequence])),
      from: Object.fromEntries(pending.map(row => [row.projector, progress[row.projector] ?? 0])),
      campaigns: sum(pending.map(row => row.campaigns)),
      keys: sum(pending.map(row => row.keys)),
      oldestAt: Math.min(...pending.map(row => row.oldestAt)),
    }
  }

  /** Records progress and that no row so far is in doubt. Throws where another holds the epoch by now. */
  async function record(folded: Progress, campaigns: number, elapsedMs: number): Promise<void> {
    const step = nextStep(1, 0)
    await tables.run(appendFoldStatement(databases, step, { folded, campaigns, elapsedMs }))
    const last = await readConfirmed()
    if (last !== step.foldId) {
      tenure = undefined
      const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
      if (holders.some(other => isHold(other.holder))) throw new FoldHeld('a rebuild exchanges the tables')
      throw new SupersededFolder(`${holder} no longer holds the fold`)
    }
    confirmed = step.foldId
    progress = { ...progress, ...folded }
  }

  async function readConfirmed(): Promise<bigint> {
    const [row] = await tables.rows<{ foldId: string }>(confirmedFoldStatement(databases))
    return BigInt(row?.foldId ?? '0')
  }

  async function backoff(attempt: number): Promise<void> {
    await sleep(50 * 2 ** attempt * (0.5 + random() / 2))
  }

  return {
    async takeOver() {
      const { isSettled, ...taken } = await takeEpoch({
        tables,
        databases,
        holder,
        respectsHold,
        afterHold,
        epochFloor,
        backoff,
      })
      tenure = taken
      counter = 0n
      if (!isSettled) await settle()
      confirmed = await readConfirmed()
      const rows = await tables.rows<{ projector: string; sequence: number }>(progressStatement(databases))
      progress = Object.fromEntries(rows.map(row => [row.projector, row.sequence]))
      await restamp()
      await record({}, 0, 0)
      return tenure
    },

    async fold() {
      if (inDoubt) await restamp()
      const startedAt = monotonicMs()
      const pending = await readPending()
      if (!pending) return undefined
      const { campaigns, keys, to, from, oldestAt } = pending
      let statements = 0
      // Keys first: they are few, and a revoked one must die within two seconds.
      if (keys > 0) statements += await foldKeys()
      if (campaigns > 0) statements += await foldCampaigns(campaigns, { from, to })
      const elapsedMs = monotonicMs() - startedAt
      await record(to, campaigns, elapsedMs)
      return { campaigns, keys, elapsedMs, oldestAt, statements }
    },

    async foldAll(onProgress) {
      const startedAt = monotonicMs()
      const pending = await readPending()
      const [known] = await tables.rows<{ campaigns: number }>(knownCampaignsStatement(databases))
      const campaigns = known?.campaigns ?? 0
      const statements = (await foldKeys()) + (await foldCampaigns(campaigns, 'all', onProgress))
      const elapsedMs = monotonicMs() - startedAt
      await record(pending?.to ?? {}, campaigns, elapsedMs)
      const { keys, oldestAt } = pending ?? { keys: 0, oldestAt: 0 }
      return { campaigns, keys, elapsedMs, oldestAt, statements }
    },
  }
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
