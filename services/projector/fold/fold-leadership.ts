/**
 * The term of a leader of the fold: its epoch, the numbers of its statements, the watermark and the history.
 *
 * The epoch is a fencing token: each statement of the fold has it as a condition, so a superseded leader writes nothing. A statement
 * that arrives late writes nothing either, because a newer epoch is there by then. So two rules are enough:
 * - A new leader first waits until ClickHouse runs no statement of an older epoch. After that, everything that was ever written
 *   is visible, or never will be.
 * - A leader that does not know the outcome of a statement is no leader any more: it takes a new epoch, and waits the same way.
 */
import { invariant } from '../../runtime/ops/invariants.ts'
import { untilNoneRuns, type WaitOptions } from '../../tables/clickhouse/statements.ts'
import { qualified } from '../../tables/generation-log.ts'
import { type Databases, type Tables, TablesError } from '../../tables/port.ts'
import { createDays, type Days } from './days.ts'
import {
  attemptOf,
  epochHoldersStatement,
  FoldPaused,
  held,
  holdsEpochStatement,
  SupersededFoldWorker,
  type Term,
  takeEpoch,
} from './fold-epochs.ts'
import { type FoldStep, platformDigitsOf } from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import { createLine, ServerSlow, writtenTables } from './line.ts'
import { aheadMsMax, createWatermark, type Watermark } from './watermark.ts'

export type FoldLeadership = ReturnType<typeof createFoldLeadership>

const epochBits = 32n

export function createFoldLeadership(dependencies: FoldWorkerDependencies) {
  const { tables, databases, config, sleep, random, stampsFrom, signal, untilNoneRuns } = dependencies
  const { rememberWatermark = async (watermark: number) => watermark } = dependencies
  const platformDigits = platformDigitsOf(config)
  let term: Term | undefined
  /** The generation of the term. Another one may become current between any two statements. */
  let ledger = ''
  let counter = 0n
  let latest = { ledger: '', epoch: 0n }
  /**
   * ClickHouse was too busy for what cannot be split. Until a fold is quick again, each statement has the time of a campaign that is
   * folded alone: with less, a busy server would refuse one of them in every fold, and nothing would ever be folded.
   */
  let isSlow = false

  const backoff = (attempt: number) => sleep(50 * 2 ** attempt * (0.5 + random() / 2))
  const endTerm = () => {
    term = undefined
  }
  const line = createLine({
    tables,
    runPiece: dependencies.runPiece,
    nextStep,
    async beforePiece() {
      signal?.throwIfAborted()
      // Also between the pieces of a long fold.
      await advanceWatermark('if due')
      if (stampsFrom === undefined) await days.beforePiece()
    },
    onUnseen: endTerm,
  })
  const watermark = createWatermark({ ...dependencies, line, rememberWatermark })

  /** Nothing reads a generation before it is promoted, so it has neither history nor watermark. */
  const days = createDays({ ...dependencies, line, nextStep, reached: watermark.reached })

  /** The next statement of this term. Throws `SupersededFoldWorker` if there is no term. */
  function nextStep(pieces = 1, piece = 0): FoldStep {
    if (!term) throw new SupersededFoldWorker('acquireLeadership has to be called first')
    if (databases.ledger !== ledger) throw ofOtherGeneration()
    counter++
    invariant('fold-id-room', counter >> epochBits === 0n)
    const foldId = (term.epoch << epochBits) + counter
    const { PLEDGEVIEW_FOLD_MS_MAX: foldMsMax, PLEDGEVIEW_FOLD_ALONE_MS_MAX: aloneMsMax } = config
    return {
      ...{ term, foldId, pieces, piece, platformDigits, stampsFrom },
      msMax: isSlow ? Math.max(foldMsMax, aloneMsMax) : foldMsMax,
      memoryBytesMax: config.PLEDGEVIEW_FOLD_MEMORY_BYTES_MAX,
      latest: dependencies.now && dependencies.now() + aheadMsMax,
      dayEndsAt: days.endsAt(),
    }
  }

  /** How the fold ended. It says how long the next statements may take. */
  function ended(how: { elapsedMs: number } | { error: unknown }): void {
    if ('elapsedMs' in how) isSlow &&= how.elapsedMs > config.PLEDGEVIEW_FOLD_MS_MAX
    else isSlow ||= how.error instanceof ServerSlow
  }

  async function advanceWatermark(when: Parameters<Watermark['advance']>[1]): Promise<void> {
    if (stampsFrom !== undefined) return
    const isLeading = await watermark.advance(nextStep, when)
    if (!isLeading) throw await lost()
  }

  /** Ends the term. Resolves with why this fold worker does not lead any more. */
  async function lost(): Promise<Error> {
    endTerm()
    if (databases.ledger !== ledger) return ofOtherGeneration()
    const holders = await tables.rows<{ holder: string }>(epochHoldersStatement(databases))
    if (holders.some(({ holder }) => attemptOf(holder) !== undefined)) return held()
    return new SupersededFoldWorker(`${dependencies.holder} no longer leads the fold`)
  }

  return {
    ...line,
    /** Takes the next epoch, once no statement of an older one runs. Throws `FoldPaused`, or `SupersededAssignment` if another reader has the partition. */
    async acquire(): Promise<Term> {
      endTerm()
      ledger = databases.ledger
      // First, so that a process that lost its partition takes no epoch. Only this reader can raise it.
      const atLeast = await rememberWatermark(0)
      const taken = await takeEpoch(dependencies, backoff)
      const isHigher = latest.ledger !== ledger || taken.epoch > latest.epoch
      invariant('epoch-grows', isHigher, () => ({ before: `${latest.epoch}`, epoch: `${taken.epoch}` }))
      latest = { ledger, epoch: taken.epoch }
      await untilNoneRuns()
      term = taken
      counter = 0n
      try {
        if (stampsFrom !== undefined) await watermark.look()
        else {
          await advanceWatermark({ atLeast })
          await days.begin()
        }
      } catch (error) {
        endTerm()
        ended({ error })
        throw error
      }
      return taken
    },
    /** Writes the days (days.ts). Runs after each fold. */
    async keepDays(last: Parameters<Days['keep']>[0]): Promise<void> {
      if (stampsFrom === undefined) await days.keep(last)
    },
    nextStep,
    /** Writes the watermark if it is time for it (watermark.ts). Throws if another process leads. */
    advanceWatermark: () => advanceWatermark('if due'),
    /** Throws if a higher epoch has been taken: then what this term sent may not have been written. */
    async mustHold(): Promise<void> {
      const [row] = await tables.rows<{ holds: boolean }>(holdsEpochStatement(databases, nextStep().term))
      if (!row?.holds) throw await lost()
    },
    ended,
  }
}

function ofOtherGeneration(): FoldPaused {
  return new FoldPaused('another generation is current')
}

/*
 * Whether ClickHouse still runs statements of the fold. A new leader waits until it runs none of an older epoch. Time alone does not tell: a
 * statement is cancelled after its time, but the end of an insert, when its rows go to the disk, cannot be cancelled.
 */

/**
 * Resolves once no statement of the fold runs on these tables. Throws a retryable `TablesError` if one still runs after the time to
 * wait, and one that is not retryable if the user may not see running statements.
 */
export async function untilNoFoldRuns(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  wait: WaitOptions,
): Promise<void> {
  try {
    // The name ends with a space or with the line.
    const inserts = writtenTables.flatMap(table =>
      [' ', '\n'].map(end => `INSERT INTO ${qualified(table, databases)}${end}`),
    )
    await untilNoneRuns(tables, inserts, wait)
  } catch (error) {
    if (!(error instanceof TablesError && error.type === 'ACCESS_DENIED')) throw error
    throw new TablesError(
      'the fold has to see which statements run: GRANT SELECT ON system.processes to the user of the projector',
      { retryable: false, type: error.type, cause: error },
    )
  }
}
