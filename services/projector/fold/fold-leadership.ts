/**
 * What a fold worker knows while it leads: its term, how far the batches are folded, and which rows are in doubt.
 *
 * A row is *in doubt* if the statement that wrote it, or may have written it, was not seen to end in time. Its change may have
 * become visible later than its stamp promises, so a poller may have missed it. A new stamp ends the doubt.
 *
 * On replicas, a statement can end before it is decided whether its rows stay: they become visible once a majority of the replicas has
 * them, and nothing bounds the time until then. A restamp that does not see such rows would leave them under their old
 * stamps for ever, because later folds find them as they should be. But ClickHouse (26.2 and later) refuses every insert into a
 * table with an undecided part, even an insert without rows. So one without rows comes before each restamp (until-decided.sql).
 * When it succeeds, everything that an ended statement wrote before is visible, or never will be. The restamp could not be its own proof:
 * it reads first, and is refused, or not, after that.
 */
import { openDay } from './day-close.ts'
import {
  type EpochDependencies,
  FoldPaused,
  FoldStopped,
  SupersededFoldWorker,
  takeEpoch,
} from './fold-epochs.ts'
import { isRebuildHolder, isStoppedHolder } from './fold-pause.ts'
import { createPieceRunner, type RunPieces } from './fold-pieces.ts'
import { readConfirmed, readProgress } from './fold-progress.ts'
import {
  appendFoldStatement,
  epochHoldersStatement,
  type FoldStep,
  type Progress,
  restampStatement,
  type Term,
  untilDecidedStatement,
} from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import { createStampFloor, stampClockStatement } from './stamp-floor.ts'

export interface FoldLeadership {
  /** Takes the next epoch, and gives new stamps to rows that an earlier leader left in doubt. Throws `FoldPaused`. */
  acquire(): Promise<Term>
  /** How far the batches are folded, as recorded. */
  progress(): Progress
  /** The next statement of this term. Throws `SupersededFoldWorker` if there is no term. */
  nextStep(pieces: number, piece: number): FoldStep
  runPieces: RunPieces
  /** Closes the UTC day if it is over (day-close.ts). Runs before each fold, while no statement of it runs. */
  keepDay(how?: { isOver: boolean }): Promise<void>
  /** Gives new stamps to all rows in doubt, if there are any. */
  endDoubt(): Promise<void>
  /** Writes the stamp floor if it is time for it (stamp-floor.ts). Throws if another process leads. */
  advanceFloor(): Promise<void>
  /** Records progress, and that no row so far is in doubt. Throws if another process holds the epoch by now. */
  record(folded: Progress, campaigns: number, elapsedMs: number): Promise<void>
}

const epochBits = 32n

export function createFoldLeadership(dependencies: FoldWorkerDependencies): FoldLeadership {
  const { tables, databases, settings, monotonicMs, sleep, random, liveModel, signal } = dependencies
  const { settle = () => sleep(settings.settleMs), untilNoneRuns = async () => {} } = dependencies
  let term: Term | undefined
  let progress: Progress = {}
  let counter = 0n
  /** No row up to this fold_id is in doubt. */
  let confirmed = 0n
  /** A statement did not end in time, and the rows that it may have written do not have new stamps yet. */
  let inDoubt = false

  const backoff = (attempt: number) => sleep(50 * 2 ** attempt * (0.5 + random() / 2))
  const floor = createStampFloor({
    tables,
    databases,
    everyMs: settings.horizonMs / 4,
    settleMs: settings.horizonMs,
    sleep,
    monotonicMs,
    onClockStep: dependencies.onClockStep ?? (() => {}),
  })
  /**
   * The end of a statement was not seen. A server that stood still (stopped, or a paused machine) goes on with it when it
   * answers again, however long after its time. So the time in which it ends begins with an answer. On replicas, another one may
   * answer (running-folds.ts).
   */
  let mayStillRun = false
  async function untilEnded(): Promise<void> {
    if (!mayStillRun) return
    await tables.rows(stampClockStatement(databases))
    await sleep(settings.horizonMs / 2)
    await untilNoneRuns()
    mayStillRun = false
  }
  /** Nothing reads the stamps of shadow tables before the swap, so these have no floor. */
  async function advanceFloor(how: 'begin' | 'advance'): Promise<void> {
    if (liveModel !== undefined) return
    const isLeading = await floor[how](() => nextStep(1, 0)).catch((error: unknown) => {
      mayStillRun = true
      throw error
    })
    if (isLeading) return
    term = undefined
    throw await lostLeadership(dependencies)
  }
  /** The monotonic time at which the day of this term is probably over. */
  let dayOverAt = Number.POSITIVE_INFINITY
  /** Shadow tables have no history. */
  async function beginDay(): Promise<void> {
    if (!term || liveModel !== undefined) return
    await untilEnded()
    const askedAt = monotonicMs()
    const advance = () => advanceFloor('begin')
    const day = await openDay({ tables, databases, nextStep, runPieces, advanceFloor: advance, sleep })
    if (!day) {
      term = undefined
      throw await lostLeadership(dependencies)
    }
    term = { ...term, until: day.until }
    dayOverAt = askedAt + day.msLeft
  }
  const runPieces = createPieceRunner({
    tables,
    horizonMs: settings.horizonMs,
    nextStep,
    async beforePiece() {
      signal?.throwIfAborted()
      await untilEnded()
      // Also between the pieces of a long fold.
      await advanceFloor('advance')
    },
    onUnseen: () => {
      mayStillRun = true
    },
    onDoubt: () => {
      inDoubt = true
    },
    backoff,
    monotonicMs,
    sleep,
  })

  function nextStep(pieces: number, piece: number): FoldStep {
    if (!term) throw new SupersededFoldWorker('acquireLeadership has to be called first')
    counter++
    const foldId = (term.epoch << epochBits) + counter
    const { horizonMs, memoryBytesMax } = settings
    return { term, foldId, pieces, piece, msMax: horizonMs / 2, memoryBytesMax }
  }

  /** Succeeds when no row of the read table is undecided. */
  async function untilDecided(): Promise<void> {
    await runPieces({
      name: 'the look whether all earlier inserts are decided (until-decided.sql)',
      pieces: 1,
      statementOf: step => untilDecidedStatement(databases, step),
      partsOf: refuseLasting(1),
      afterFailure: async () => {},
    })
  }

  /** Includes the rows of its own failed attempts. */
  async function restamp(): Promise<void> {
    if (liveModel === undefined) {
      await untilDecided()
      await runPieces({
        name: 'giving new stamps to rows in doubt (restamp.sql)',
        pieces: 1,
        statementOf: step => restampStatement(databases, step, { after: confirmed, before: step.foldId }),
        partsOf: refuseLasting(4),
        afterFailure: async () => {},
      })
    }
    inDoubt = false
  }

  async function record(folded: Progress, campaigns: number, elapsedMs: number): Promise<void> {
    const step = nextStep(1, 0)
    await tables.run(appendFoldStatement(databases, step, { folded, campaigns, elapsedMs }))
    if ((await readConfirmed(tables, databases)) !== step.foldId) {
      term = undefined
      throw await lostLeadership(dependencies)
    }
    confirmed = step.foldId
    progress = { ...progress, ...folded }
  }

  return {
    async acquire() {
      const { isSettled, ...taken } = await takeEpoch(epochDependencies(dependencies, backoff))
      term = taken
      counter = 0n
      if (!isSettled) {
        await settle()
        await untilNoneRuns()
      }
      await beginDay()
      confirmed = await readConfirmed(tables, databases)
      progress = await readProgress(tables, databases)
      await restamp()
      await record({}, 0, 0)
      await advanceFloor('begin')
      return term
    },
    async keepDay({ isOver } = { isOver: false }) {
      if (isOver || monotonicMs() >= dayOverAt) await beginDay()
    },
    progress: () => progress,
    nextStep,
    runPieces,
    async endDoubt() {
      if (inDoubt) await restamp()
    },
    advanceFloor: () => advanceFloor('advance'),
    record,
  }
}

/** Splits a failed piece into this many, and throws what can never succeed. */
export function refuseLasting(parts: number): Parameters<RunPieces>[0]['partsOf'] {
  return ({ refusal }) => {
    if (refusal?.lasting) throw refusal.lasting
    return parts
  }
}

function epochDependencies(
  dependencies: FoldWorkerDependencies,
  backoff: (attempt: number) => Promise<void>,
): EpochDependencies {
  const { tables, databases, holder } = dependencies
  const { respectsPause = () => true, afterExpiredPause = async () => {} } = dependencies
  const { epochFloor = async () => 0n, overridesStop = false } = dependencies
  return { tables, databases, holder, respectsPause, afterExpiredPause, epochFloor, overridesStop, backoff }
}

/** Why this fold worker does not lead any more. */
async function lostLeadership({ tables, databases, holder }: FoldWorkerDependencies): Promise<Error> {
  const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
  if (holders.some(other => isStoppedHolder(other.holder))) return new FoldStopped()
  if (holders.some(other => isRebuildHolder(other.holder))) {
    return new FoldPaused('a rebuild is swapping the tables')
  }
  return new SupersededFoldWorker(`${holder} no longer leads the fold`)
}
