/**
 * The watermark: what lists send as `X-Data-As-Of`. Every change with an earlier stamp is visible, and every later change gets a stamp
 * at or after it, whatever ClickHouse's clock does.
 *
 * The leader of the fold writes it between two statements, and never during one: the highest moment that ClickHouse's clock has
 * shown it. A stamp is `greatest(clock, watermark, the row's old stamp + 1 ms)` when its statement starts. So a change that a list does
 * not have belongs to a statement that had not started when the watermark was written, and its stamp is not earlier. Such a poll
 * then finds it.
 *
 * Before a watermark is written, it is also stored in the consumer group (log/port.ts). After a restore, or on new tables, a new leader
 * starts at the stored value, so it gives no stamp that a poller has already passed, also if the server's clock is behind. A new consumer
 * group has no such value. While a rebuild holds the fold, it writes watermarks without storing them.
 *
 * The watermark stands still while no process leads, and while a statement runs. Nothing else becomes visible then. It is on disk,
 * so it outlives every process. If the clock steps back, stamps stay at the watermark until the clock has passed it; the
 * watermark then grows by a millisecond for each statement, because caches tell two states of a campaign apart by their stamps.
 * So each poll until then delivers what changed since the step again. Nothing is lost.
 *
 * It never decreases. If a clock jumps ahead by some time, every later stamp is too late by that time. So if ClickHouse's clock is an hour
 * ahead of the leader's own, the watermark is not written: the fold stops, and says so.
 */
import { invariant } from '../../runtime/ops/invariants.ts'
import { dayMs } from '../../runtime/runtime.ts'
import { type Databases, type Statement, type Tables, TablesError } from '../../tables/port.ts'
import { foldWholeStatement } from './fold-progress.ts'
import { bounds, type FoldStep, fenceOf } from './fold-statements.ts'
import type { FoldWorkerDependencies } from './fold-worker.ts'
import { type Line, runWhole } from './line.ts'

/** ClickHouse's clock moved by another time than passed, or is behind the stamps. */
export interface ClockStep {
  /** By how much it moved too far, ms. Negative: it stepped back. */
  stepMs: number
  /** How far it is behind the highest stamp, ms. */
  behindMs: number
}

interface WatermarkDependencies
  extends Pick<FoldWorkerDependencies, 'databases' | 'monotonicMs' | 'now' | 'onClockStep'> {
  tables: Pick<Tables, 'rows' | 'run'>
  line: Pick<Line, 'run'>
  /** See `EventReader`. */
  rememberWatermark: (watermark: number, shown: number) => Promise<unknown>
}

export type Watermark = ReturnType<typeof createWatermark>

interface ClockRow {
  now: number
  watermark: number
  /** Of the leader. */
  epoch: string
  holder: string
}

/** The batch log drops a batch after this time, folded or not (contracts/tables/generation/0002-batches.sql). */
export const batchesKeptMs = 30 * dayMs
// A fold may take long after the watermark that it began with.
const unfoldedMsMax = batchesKeptMs - dayMs
// It is written at most this often, unless the clock is behind it: how old a list's X-Data-As-Of gets while nothing else delays it.
const everyMs = 1_000
// Less is the rate correction of a time service.
const stepMsMin = 100
// Machines whose time service works differ by less than a second.
export const aheadMsMax = 3_600_000

/**
 * Writes this watermark (Unix ms): everything stamped so far is visible, and no later stamp is earlier. Writes nothing if another fold
 * worker leads: a superseded one promises nothing. The leader says the moment, because it has to be remembered before it is written.
 */
export function advanceWatermarkStatement(databases: Databases, step: FoldStep, reached: number): Statement {
  return {
    query: `INSERT INTO ${databases.read}.watermarks (shard, reached)
            SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'), fromUnixTimestamp64Milli({reached:Int64}, 'UTC')
            WHERE ${fenceOf(databases, step)} ${bounds(step)}`,
    query_params: { holder: step.term.holder, reached },
  }
}

/** One row: the leader, and ClickHouse's clock and the watermark, both Unix ms. The watermark is 0 if none was written. */
export function clockStatement({ ledger, read }: Databases): Statement {
  return {
    query: `WITH (SELECT max((epoch, holder)) FROM ${ledger}.fold_epochs) AS leader
            SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS now, toUnixTimestamp64Milli(max(reached)) AS watermark,
              toString(leader.1) AS epoch, leader.2 AS holder
            FROM ${read}.watermarks`,
  }
}

export function createWatermark(dependencies: WatermarkDependencies) {
  const { tables, line, databases, monotonicMs, now, rememberWatermark, onClockStep } = dependencies
  let advancedAt = Number.NEGATIVE_INFINITY
  let isBehind = false
  /** The last watermark that was read, Unix ms. */
  let found = 0
  let isFirst = true
  let written = 0
  let seen: { now: number; asked: number; answered: number } | undefined
  /** The watermark after which everything is folded once more. */
  let expired = 0

  async function watchClock(atLeast: number): Promise<ClockRow> {
    const asked = monotonicMs()
    const [row] = await tables.rows<ClockRow>(clockStatement(databases))
    const answered = monotonicMs()
    if (row === undefined) throw new Error('ClickHouse returned no time')
    const behindMs = Math.max(0, row.watermark - row.now, atLeast - row.now)
    isBehind = behindMs > 0
    const stepMs = seen === undefined ? -behindMs : stepOf(seen, { now: row.now, asked, answered })
    if (Math.abs(stepMs) >= stepMsMin) onClockStep?.({ stepMs, behindMs })
    seen = { now: row.now, asked, answered }
    // Before the watermark moves, and before the clock is checked: under this clock, batches expire also while nothing is folded.
    if (row.watermark > 0 && row.watermark !== expired && row.now - row.watermark > unfoldedMsMax) {
      // Once, however many leaders see it: under such a clock none can fold. It is not in the line, because no leader has to wait for it:
      // batches that arrive late, or twice, are only folded again.
      const name = `-since-${row.watermark}`
      await tables.run(foldWholeStatement(databases, `${row.holder}${name}`, name))
      expired = row.watermark
    }
    return row
  }

  return {
    /** The one that this leader wrote last, Unix ms. */
    reached: () => written,
    /** If the watermark is so old that batches may have expired, has everything folded once more. `advance` does the same. */
    look: () => watchClock(0),
    /**
     * Writes it. False if another fold worker leads. Must not be called while a statement of the fold runs. A moment (Unix ms): it
     * reaches this at least.
     */
    async advance(nextStep: () => FoldStep, when: 'if due' | { atLeast: number }): Promise<boolean> {
      if (when === 'if due' && !isBehind && monotonicMs() - advancedAt < everyMs) return true
      const atLeast = when === 'if due' ? 0 : when.atLeast
      const { epoch, holder, now: told, watermark } = await watchClock(atLeast)
      if (now) checkClock(told, now())
      const step = nextStep()
      // An idle worker learns here that it lost the lead. Otherwise the watermark would stand still.
      if (BigInt(epoch) !== step.term.epoch || holder !== step.term.holder) return false
      // The tables were restored while the projectors ran.
      if (watermark < found) {
        const [at, was] = [watermark, found].map(ms => new Date(ms).toISOString())
        throw new Error(
          `the tables went back: their watermark was ${was}, and is ${at}. Start the projector again: it reads again what they lack`,
        )
      }
      found = watermark
      const reached = Math.max(told, watermark + 1, atLeast)
      invariant('watermark-grows', reached > written, () => ({ reached, written }))
      await rememberWatermark(reached, watermark)
      await runWhole(line, advanceWatermarkStatement(databases, step, reached))
      written = reached
      advancedAt = monotonicMs()
      // One that is found is remembered as shown with the next one. The first one at once: after a run of a second, too, it is noticed
      // that tables went back. Found, not written: behind the fence it was not.
      if (isFirst) {
        isFirst = false
        found = (await watchClock(atLeast)).watermark
        await rememberWatermark(reached, found)
      }
      return true
    },
  }
}

/** Throws if ClickHouse's clock is far ahead of the leader's own. Both Unix ms. */
function checkClock(told: number, own: number): void {
  if (told - own < aheadMsMax) return
  const [theirs, ours] = [told, own].map(ms => new Date(ms).toISOString())
  throw new TablesError(
    `ClickHouse’s clock says ${theirs}, and this process’s clock ${ours}: nothing is folded, because stamps from a time that has not ` +
      'come cannot be taken back. Set the clock that is wrong (a time service such as chrony or ntpd keeps it right); the fold then goes on',
    { retryable: true },
  )
}

/** By how much the clock moved too far between two answers; 0 if the time that passed can explain it. */
function stepOf(
  before: { now: number; asked: number; answered: number },
  after: { now: number; asked: number; answered: number },
): number {
  const movedMs = after.now - before.now
  const atLeast = after.asked - before.answered
  const atMost = after.answered - before.asked
  if (movedMs < atLeast) return Math.round(movedMs - atLeast)
  return movedMs > atMost ? Math.round(movedMs - atMost) : 0
}
