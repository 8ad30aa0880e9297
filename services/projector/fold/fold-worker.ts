/**
 * The fold worker: follows the batch log and keeps the read tables a function of the ledger.
 *
 * Only one process folds at a time. It takes an epoch, which is a fencing token: every statement has the epoch as a condition,
 * so a superseded fold worker writes nothing (sql/). Promises to pollers:
 * - A change is visible within the commit horizon of its stamp, or it gets a new stamp. A fold has half the horizon. ClickHouse
 *   cancels it after that, and a later statement gives a new stamp to what it may have written (fold-leadership.ts).
 * - Until the rows of such a fold have new stamps, nothing else is folded and no progress is recorded.
 * - No step of ClickHouse's clock, and no other commit horizon of another process, hides a change (stamp-floor.ts).
 *
 * Promises to everyone else: a campaign that cannot be folded within its bounds does not hold the others (set-aside.ts), and a
 * fold in many pieces does not hold the keys, which are folded between two pieces.
 *
 * How it fails: when its retries are used up, it throws ClickHouse's error. The recorded progress stays as it was.
 */
import type { Sleep } from '../../shared/sleep.ts'
import { type Databases, type Tables, TablesError } from '../../shared/tables/port.ts'
import { createFoldLeadership, type FoldLeadership, refuseLasting } from './fold-leadership.ts'
import { DayOver, type FailedPiece, type FoldProgress, isDayOver } from './fold-pieces.ts'
import { readPending, readPendingKeys } from './fold-progress.ts'
import {
  foldCampaignsStatement,
  foldKeysStatement,
  knownCampaignsStatement,
  type Progress,
  pieceCampaignsStatement,
  type Term,
  type Touched,
} from './fold-statements.ts'
import { createSetAside, type OnSetAside, type SetAside } from './set-aside.ts'
import type { ClockStep } from './stamp-floor.ts'

export interface FoldWorkerSettings {
  /** Commit horizon, ms: how long after its stamp a change may become visible. */
  horizonMs: number
  /** How long statements of an earlier leader may still run after a change of leadership. 0 if they died with it. */
  settleMs: number
  /** Digits of the platform's currency (ISO 4217). */
  platformDigits: number
  /** How many campaigns one statement may look at. A fold of more is split. */
  campaignsPerStatementMax: number
  /** How much memory one statement may use, bytes. A fold that needs more is split. */
  memoryBytesMax: number
  /** How long a campaign that is set aside may take to fold, ms. */
  aloneMsMax: number
}

export interface FoldWorkerDependencies {
  tables: Tables
  databases: Databases
  /** Names this run of this process; unique. */
  holder: string
  settings: FoldWorkerSettings
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
  onSetAside?: OnSetAside
  /** See `EpochDependencies`. Default: every fold pause counts, and leaves nothing to repair. */
  respectsPause?: (holder: string) => boolean
  afterExpiredPause?: () => Promise<void>
  /** See `EpochDependencies`. */
  overridesStop?: boolean
  /** Resolves when no statement of an earlier leader runs any more. Default: after `settleMs`. */
  settle?: () => Promise<void>
  /** Resolves when ClickHouse runs no statement of any fold worker on these tables (running-folds.ts). Default: only time tells. */
  untilNoneRuns?: () => Promise<void>
  /** Once it is aborted, no further statement begins: the fold throws the signal's reason. */
  signal?: AbortSignal
  /** Epochs are taken above this one. Default: 0. */
  epochFloor?: () => Promise<bigint>
  /**
   * If this worker folds shadow tables: the model database of the live tables. Rows keep the stamps that they have there.
   * No stamp is renewed, because nothing reads the shadow tables before the swap. No campaign is set aside: the bound of time
   * is long, and a rebuild must have every campaign.
   */
  liveModel?: string | undefined
  /** ClickHouse's clock stepped. */
  onClockStep?: (step: ClockStep) => void
}

export interface FoldReport {
  campaigns: number
  keys: number
  elapsedMs: number
  /** When the oldest event of the folded batches entered the log, Unix ms. */
  oldestAt: number
  statements: number
}

export interface FoldWorker {
  /** Takes the next epoch, and gives new stamps to rows that an earlier leader left in doubt. Throws `FoldPaused`. */
  acquireLeadership(): Promise<Term>
  /** Folds all pending batches. `undefined` if there are none. Throws `SupersededFoldWorker`. */
  fold(): Promise<FoldReport | undefined>
  /** Folds every campaign in the ledger, and the keys. */
  foldAll(onProgress?: (done: FoldProgress) => void): Promise<FoldReport>
}

export function createFoldWorker(dependencies: FoldWorkerDependencies): FoldWorker {
  const { tables, databases, monotonicMs, liveModel } = dependencies
  const lead = createFoldLeadership(dependencies)
  const setAside = liveModel === undefined ? createSetAside(dependencies, lead) : undefined
  const keyFold = createKeyFold(dependencies, lead)
  const foldCampaigns = createCampaignFold(dependencies, { lead, setAside, foldNewKeys: keyFold.foldNew })

  async function foldPending(): Promise<FoldReport | undefined> {
    await lead.endDoubt()
    await setAside?.tend()
    const startedAt = monotonicMs()
    const pending = await readPending(tables, databases, lead.progress())
    if (!pending) {
      await lead.advanceFloor()
      return undefined
    }
    const { campaigns, keys, to, from, oldestAt } = pending
    let statements = 0
    // Keys come first: they are few, and a new key should soon be active.
    if (keys > 0) statements += await keyFold.fold(to)
    if (campaigns > 0) {
      await setAside?.noteTouched({ from, to })
      statements += await foldCampaigns(campaigns, { from, to, except: setAside?.campaigns() ?? [] })
    }
    const elapsedMs = monotonicMs() - startedAt
    await lead.record(to, campaigns, elapsedMs)
    return { campaigns, keys, elapsedMs, oldestAt, statements }
  }

  return {
    async acquireLeadership() {
      const term = await lead.acquire()
      await setAside?.load()
      return term
    },

    async fold() {
      await lead.keepDay()
      try {
        return await foldPending()
      } catch (error) {
        if (!(error instanceof DayOver)) throw error
        // Midnight came during the fold. What it has written belongs to the day that is closed now.
        await lead.keepDay({ isOver: true })
        return await foldPending()
      }
    },

    async foldAll(onProgress) {
      const startedAt = monotonicMs()
      const pending = await readPending(tables, databases, lead.progress())
      const [known] = await tables.rows<{ campaigns: number }>(knownCampaignsStatement(databases))
      const campaigns = known?.campaigns ?? 0
      const to = pending?.to ?? {}
      const statements = (await keyFold.fold(to)) + (await foldCampaigns(campaigns, 'all', onProgress))
      const elapsedMs = monotonicMs() - startedAt
      await lead.record(to, campaigns, elapsedMs)
      const { keys, oldestAt } = pending ?? { keys: 0, oldestAt: 0 }
      return { campaigns, keys, elapsedMs, oldestAt, statements }
    },
  }
}

interface KeyFold {
  /** Folds all keys of the ledger, which has those of the batches up to `to`. Resolves with the number of statements. */
  fold(to: Progress): Promise<number>
  /** Folds them if a batch with keys has come since. Looks at most every `keysLookMs`. */
  foldNew(): Promise<void>
}

const keysLookMs = 500

function createKeyFold(
  { tables, databases, monotonicMs }: FoldWorkerDependencies,
  lead: FoldLeadership,
): KeyFold {
  /** The keys of the batches up to these are folded. */
  let folded: Progress = {}
  let lookedAt = Number.NEGATIVE_INFINITY

  async function fold(to: Progress): Promise<number> {
    const statements = await lead.runPieces({
      name: 'the fold of keys (fold-keys.sql)',
      pieces: 1,
      statementOf: step => foldKeysStatement(databases, step),
      partsOf: refuseLasting(1),
      afterFailure: lead.endDoubt,
    })
    folded = { ...folded, ...to }
    return statements
  }

  return {
    fold,
    async foldNew() {
      if (monotonicMs() - lookedAt < keysLookMs) return
      lookedAt = monotonicMs()
      const to = await readPendingKeys(tables, databases, { ...lead.progress(), ...folded })
      if (to) await fold(to)
    },
  }
}

type FoldCampaigns = (
  campaigns: number,
  touched: Touched,
  onProgress?: (done: FoldProgress) => void,
) => Promise<number>

/** Folds campaigns in pieces. A campaign that cannot be folded is found by splitting, and set aside. */
function createCampaignFold(
  { tables, databases, settings, monotonicMs, liveModel }: FoldWorkerDependencies,
  {
    lead,
    setAside,
    foldNewKeys,
  }: { lead: FoldLeadership; setAside: SetAside | undefined; foldNewKeys: () => Promise<void> },
): FoldCampaigns {
  const { platformDigits, campaignsPerStatementMax } = settings
  const folded = { platformDigits, stampsFrom: liveModel }

  /** Whether ClickHouse can fold no campaign at all in half of the time. If it cannot, or if this throws, the reason is not in a campaign. */
  async function isServerWell(): Promise<boolean> {
    const none = { from: {}, to: {} }
    const startedAt = monotonicMs()
    const statement = foldCampaignsStatement(databases, lead.nextStep(1, 0), { ...folded, touched: none })
    await tables.run(statement).catch(error => {
      throw isDayOver(error) ? new DayOver(error) : error
    })
    return monotonicMs() - startedAt <= settings.horizonMs / 4
  }

  async function partsOf(touched: Touched, { refusal, failures, ...place }: FailedPiece): Promise<number> {
    if (!refusal) return 4
    const statement = pieceCampaignsStatement(databases, place, touched)
    const [found] = await tables.rows<{ campaigns: number; first: string }>(statement)
    const campaigns = Number(found?.campaigns ?? 0)
    // After two splits the reason is probably in few campaigns. Larger steps find them soon.
    if (campaigns !== 1 || !found) return Math.min(failures > 2 ? 4 ** failures : 4, Math.max(campaigns, 1))
    if (!(await isServerWell())) return 1
    if (!setAside) {
      throw new TablesError(`campaign ${found.first} cannot be folded: ${refusal.reason}`, {
        retryable: false,
      })
    }
    await setAside.add(found.first, refusal.reason)
    return 0
  }

  return (campaigns, touched, onProgress) =>
    lead.runPieces({
      name: 'the fold of campaigns (fold-campaigns.sql)',
      pieces: Math.max(1, Math.ceil(campaigns / campaignsPerStatementMax)),
      statementOf: step => foldCampaignsStatement(databases, step, { ...folded, touched }),
      partsOf: failed => partsOf(touched, failed),
      afterFailure: lead.endDoubt,
      // Nothing reads the keys of shadow tables.
      ...(liveModel === undefined && { between: foldNewKeys }),
      onProgress,
    })
}
