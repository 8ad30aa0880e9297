/**
 * The fold worker: follows the batch log and keeps the read tables a function of the ledger.
 *
 * Only one process folds at a time. It takes an epoch, which is a fencing token: every statement has the epoch as a condition,
 * so a superseded fold worker writes nothing (sql/). Its statements run in one line: the next begins when the last has been answered
 * (line.ts). Between two of them it writes the watermark (watermark.ts). So no poller misses a change, whatever becomes of a statement
 * or of ClickHouse's clock.
 *
 * Promises to everyone else: a campaign that cannot be folded within its bounds does not hold the others (quarantine.ts), and a
 * fold in many pieces does not hold the keys, which are folded between two pieces.
 *
 * How it fails: it throws ClickHouse's error. The recorded progress stays as it was. After an error of a statement it leads no
 * longer: the caller acquires leadership again.
 */
import { activeKeysMax } from '../../api-keys/api-keys.ts'
import type { Config } from '../../runtime/config.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { inSpan } from '../../runtime/traces.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { createFoldLeadership, type FoldLeadership } from './fold-leadership.ts'
import {
  type LongRun,
  type PendingBatches,
  type PendingRun,
  readLongRuns,
  readPending,
  recordFoldedStatement,
  runsMax,
} from './fold-progress.ts'
import {
  fileStatement,
  foldCampaignsStatement,
  noteGapStatement,
  pieceCampaignsStatement,
  type Touched,
} from './fold-statements.ts'
import { type FoldProgress, type RefusedPiece, runWhole, ServerSlow, splitOrRefuse } from './line.ts'
import { createQuarantine, type OnQuarantine, type Quarantine } from './quarantine.ts'
import type { ClockStep } from './watermark.ts'

export interface FoldWorkerDependencies extends Pick<Runtime, 'monotonicMs' | 'sleep' | 'random'> {
  tables: Tables
  /** Runs a piece of the fold, which is split if ClickHouse refuses it. Default: as every statement. */
  runPiece?: Tables['run']
  databases: Databases
  /** Names this run of this process; unique. */
  holder: string
  /** It has the bounds of a statement. A fold that needs more is split. */
  config: Config
  /** The worker's own clock, Unix ms. Without it, ClickHouse's clock is believed. */
  now?: () => number
  onQuarantine?: OnQuarantine
  /** The number of an attempt on generations: it waits for no other, because only the highest can promote. Default: it is none. */
  attempt?: number
  /** Whether this attempt, which holds the fold, is given up. Default: never. */
  isGivenUp?: (attempt: number) => Promise<boolean>
  /** Resolves when ClickHouse runs no statement of the fold on these tables (fold-leadership.ts). */
  untilNoneRuns: () => Promise<void>
  /** Once it is aborted, no further statement begins: the fold throws the signal's reason. */
  signal?: AbortSignal
  /** See `EventReader`. Default: no watermark is remembered. */
  rememberWatermark?: (watermark: number, shown?: number) => Promise<number>
  /** Epochs are taken above this one. Default: 0. */
  epochFloor?: () => Promise<bigint>
  /**
   * If this worker folds a generation that is being built: the database of the current one's read tables. Rows keep the stamps that they
   * have there. No public campaign is left out: the bound of time is long, and a generation must have every one. Keys are not its work.
   */
  stampsFrom?: string | undefined
  /** Reports each step of ClickHouse's clock once. */
  onClockStep?: (step: ClockStep) => void
}

/** Of the batches that were folded. */
export interface FoldReport extends Pick<PendingBatches, 'campaigns' | 'keys' | 'oldestAt' | 'isOfBacklog'> {
  elapsedMs: number
  statements: number
}

export type FoldWorker = ReturnType<typeof createFoldWorker>

// An old reading costs a little more, and changes nothing (fold-progress.ts).
const longRunsMsMax = 600_000

export function createFoldWorker(dependencies: FoldWorkerDependencies) {
  const { tables, databases, monotonicMs, stampsFrom } = dependencies
  const lead = createFoldLeadership(dependencies)
  // A generation that is being built uses it for withdrawals alone.
  const own = createQuarantine(dependencies, lead)
  const quarantine = stampsFrom === undefined ? own : undefined
  const keyFold = createKeyFold(dependencies, lead)
  const foldCampaigns = createCampaignFold(dependencies, { lead, quarantine: own, keyFold })
  let longRuns: readonly LongRun[] = []
  let longRunsAt = Number.NEGATIVE_INFINITY

  async function pendingBatches() {
    if (monotonicMs() - longRunsAt > longRunsMsMax) {
      longRuns = await readLongRuns(tables, databases)
      longRunsAt = monotonicMs()
    }
    return readPending(tables, databases, longRuns)
  }

  /** Runs `work`, and records the pending batches of these runs as folded. */
  async function recorded(
    runs: readonly PendingRun[],
    work: () => Promise<number>,
  ): Promise<Pick<FoldReport, 'elapsedMs' | 'statements'>> {
    const startedAt = monotonicMs()
    const statements = await work()
    const elapsedMs = monotonicMs() - startedAt
    await runWhole(lead, recordFoldedStatement(databases, lead.nextStep(), { runs, elapsedMs }))
    await lead.mustHold()
    return { elapsedMs, statements }
  }

  async function foldBatches({ runs, campaigns, keys, isAgain }: PendingBatches): Promise<number> {
    const { foldId } = lead.nextStep()
    const hasQuarantine = quarantine !== undefined && !quarantine.isEmpty()
    // Keys come first: they are few, and a new key should soon be active.
    const statements = keys > 0 && stampsFrom === undefined ? await keyFold.fold() : 0
    if (campaigns === 0) return statements
    if (isAgain) await runWhole(lead, noteGapStatement(databases, lead.nextStep()))
    return statements + (await foldCampaigns(campaigns, { foldId, runs, longRuns, hasQuarantine, isAgain }))
  }

  async function foldPending(): Promise<FoldReport | undefined> {
    // A campaign that was folded alone may be folded again below, on the next day.
    if (await quarantine?.tend()) await lead.keepDays({ campaigns: 1, isOfBacklog: true })
    const pending = await pendingBatches()
    if (!pending) {
      await lead.keepDays({ campaigns: 0, isOfBacklog: false })
      await lead.advanceWatermark()
      return undefined
    }
    const { runs, campaigns, keys, oldestAt, isOfBacklog } = pending
    const done = await inSpan('fold', () => recorded(runs, () => foldBatches(pending)), {
      'pledgeview.campaigns': campaigns,
      'pledgeview.keys': keys,
    })
    await lead.keepDays({ campaigns, isOfBacklog })
    await lead.advanceWatermark()
    const report = { campaigns, keys, oldestAt, isOfBacklog, ...done }
    return runs.length < runsMax ? report : bothOf(report, await foldPending())
  }

  return {
    /** Takes the next epoch, once no statement of an older one runs. Throws `FoldPaused`, or `SupersededAssignment` if another reader has the partition. */
    async acquireLeadership() {
      const term = await lead.acquire()
      longRunsAt = Number.NEGATIVE_INFINITY
      await quarantine?.load()
      return term
    },

    /** Folds all pending batches. `undefined` if there are none. Throws `SupersededFoldWorker`. */
    async fold() {
      try {
        const report = await foldPending()
        if (report) lead.ended(report)
        return report
      } catch (error) {
        lead.ended({ error })
        throw error
      }
    },

    /** Folds every campaign in the ledger. */
    async foldAll(onProgress?: (done: FoldProgress) => void) {
      const pending = await pendingBatches()
      const [known] = await tables.rows<{ campaigns: number }>({
        query: `SELECT uniqExact(campaign_id) AS campaigns FROM ${databases.ledger}.campaign_ledger`,
      })
      await recorded(pending?.runs ?? [], () => foldCampaigns(known?.campaigns ?? 0, 'all', onProgress))
    },

    foldKeys: keyFold.fold,
    nextStep: lead.nextStep,
    mustHold: lead.mustHold,
  }
}

function bothOf(first: FoldReport, second: FoldReport | undefined): FoldReport {
  if (!second) return first
  return {
    campaigns: first.campaigns + second.campaigns,
    keys: first.keys + second.keys,
    elapsedMs: first.elapsedMs + second.elapsedMs,
    oldestAt: Math.min(first.oldestAt, second.oldestAt),
    isOfBacklog: first.isOfBacklog || second.isOfBacklog,
    statements: first.statements + second.statements,
  }
}

type KeyFold = ReturnType<typeof createKeyFold>

// A new key is active about this long after it came, however many campaigns are folded meanwhile.
const keysEveryMs = 1_000

function createKeyFold({ databases, monotonicMs }: FoldWorkerDependencies, lead: FoldLeadership) {
  let foldedAt = Number.NEGATIVE_INFINITY

  /** Folds all keys of the ledger. Resolves with the number of statements. */
  async function fold(): Promise<number> {
    foldedAt = monotonicMs()
    return lead.runPieces({
      name: 'the fold of keys (fold-keys.sql)',
      pieces: 1,
      statementOf: step => fileStatement('fold-keys', databases, step, { active_keys_max: activeKeysMax }),
      partsOf: splitOrRefuse(1),
    })
  }

  return {
    fold,
    /** Folds them between the pieces of a long fold, once in `keysEveryMs`. */
    async foldIfDue() {
      if (monotonicMs() - foldedAt >= keysEveryMs) await fold()
    },
  }
}

/** Folds campaigns in pieces. A campaign that cannot be folded is found by splitting, and quarantined. */
function createCampaignFold(
  { tables, databases, config, monotonicMs, stampsFrom }: FoldWorkerDependencies,
  { lead, quarantine, keyFold }: { lead: FoldLeadership; quarantine: Quarantine; keyFold: KeyFold },
) {
  /** Throws if ClickHouse cannot even fold no campaign in half of the time: then the reason is not in a campaign. */
  async function checkServer(): Promise<void> {
    const startedAt = monotonicMs()
    const step = lead.nextStep()
    await runWhole(lead, foldCampaignsStatement(databases, step, { campaign: '' }))
    const elapsedMs = monotonicMs() - startedAt
    if (elapsedMs <= step.msMax / 2) return
    throw new ServerSlow(`ClickHouse is slow: a fold of nothing took ${Math.round(elapsedMs)} ms`, {
      retryable: true,
    })
  }

  async function partsOf(touched: Touched, { refusal, refusals, ...place }: RefusedPiece): Promise<number> {
    const statement = pieceCampaignsStatement(databases, place, touched)
    const [found] = await tables.rows<{ campaigns: number; first: string; isPublic: boolean }>(statement)
    const campaigns = Number(found?.campaigns ?? 0)
    // After two splits the reason is probably in few campaigns. Larger steps find them soon.
    if (campaigns !== 1 || !found) return Math.min(refusals > 2 ? 4 ** refusals : 4, Math.max(campaigns, 1))
    await checkServer()
    await quarantine.add(found.first, refusal.reason, found.isPublic)
    return 0
  }

  /** Resolves with the number of statements. */
  return (campaigns: number, touched: Touched, onProgress?: (done: FoldProgress) => void) =>
    lead.runPieces({
      name: 'the fold of campaigns (fold-campaigns.sql)',
      pieces: Math.max(1, Math.ceil(campaigns / config.PLEDGEVIEW_FOLD_CAMPAIGNS_MAX)),
      statementOf: step => foldCampaignsStatement(databases, step, touched),
      partsOf: refused => partsOf(touched, refused),
      ...(stampsFrom === undefined && { between: keyFold.foldIfDue }),
      onProgress,
    })
}
