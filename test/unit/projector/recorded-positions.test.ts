/**
 * A projector notices that its group is ahead of the tables, and goes back. In every healthy situation it goes on where the group
 * is. Both are shown on a small model of one partition: what the log has, what the tables have, and what the group committed.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  behindOf,
  type Claim,
  describeBehind,
  recordedOf,
} from '../../../services/projector/recorded-positions.ts'
import { lostFault, startOf } from '../../../services/shared/event-log/kafka/offsets.ts'

const place = 'pledges/0'
const daily = { isFilled: true, areNoted: true }
const batchDays = 30

/** Where a projector begins, and why it cannot, if so. */
function start(
  committed: number | undefined,
  claims: readonly Claim[],
  { low = 0, history = daily }: { low?: number; history?: { isFilled: boolean; areNoted: boolean } } = {},
): { at: number; fault: string | undefined } {
  const groups = new Map(committed === undefined ? [] : [[place, committed]])
  const behind = behindOf(groups, recordedOf(claims), history).get(place)
  return { at: startOf(committed, { low }, behind), fault: lostFault(committed, { low }, behind) }
}

const claim = (next: number, hour: number): Claim => ({ place, next, hour })

type Step =
  | { kind: 'append'; records: number }
  | { kind: 'batch'; records: number }
  | { kind: 'commit' }
  | { kind: 'rebalance' }
  /** The projectors run. */
  | { kind: 'hours'; hours: number }
  /** They do not. */
  | { kind: 'away'; hours: number }
  | { kind: 'forget' }
  | { kind: 'otherGroup'; records: number }

const steps = fc.array(
  fc.oneof<fc.Arbitrary<Step>[]>(
    fc.record({ kind: fc.constant('append' as const), records: fc.nat(50) }),
    fc.record({ kind: fc.constant('batch' as const), records: fc.nat(50) }),
    fc.record({ kind: fc.constant('commit' as const) }),
    fc.record({ kind: fc.constant('rebalance' as const) }),
    fc.record({ kind: fc.constant('hours' as const), hours: fc.integer({ min: 1, max: 1_000 }) }),
    fc.record({ kind: fc.constant('away' as const), hours: fc.integer({ min: 1, max: 1_000 }) }),
    fc.record({ kind: fc.constant('forget' as const) }),
    fc.record({ kind: fc.constant('otherGroup' as const), records: fc.nat(50) }),
  ),
  { maxLength: 60 },
)

/** A partition, its projectors and their tables. */
function createWorld() {
  let [end, hour] = [0, 0]
  let [batches, notes]: [Claim[], Claim[]] = [[], []]
  let [committed, read, others]: [number | undefined, number, number] = [undefined, 0, 0]
  // Which records the tables have.
  let has = new Set<number>()
  const claims = () => [...batches, ...notes]

  function take(from: number, records: number): number {
    const to = Math.min(end, from + records)
    if (to === from) return from
    for (let offset = from; offset < to; offset++) has.add(offset)
    batches.push(claim(to, hour))
    return to
  }

  return {
    do(step: Step): void {
      if (step.kind === 'append') end += step.records
      if (step.kind === 'batch') read = take(read, step.records)
      if (step.kind === 'commit' && read > (committed ?? 0)) committed = read
      if (step.kind === 'otherGroup') others = take(others, step.records)
      if (step.kind === 'rebalance') read = start(committed, claims()).at
      if (step.kind === 'away') hour += step.hours
      if (step.kind === 'hours') {
        // They get to the end of the log, and note each hour where they are.
        read = take(read, end)
        if (read > 0) committed = read
        for (const until = hour + step.hours; hour < until; hour++) notes.push(claim(end, hour))
      }
      if (step.kind === 'forget') batches = batches.filter(at => at.hour > hour - batchDays * 24)
    },
    backup: () => ({ batches: [...batches], notes: [...notes], has: new Set(has) }),
    restore(backup: { batches: Claim[]; notes: Claim[]; has: Set<number> }) {
      batches = [...backup.batches]
      notes = [...backup.notes]
      has = new Set(backup.has)
    },
    readRest(): void {
      read = start(committed, claims()).at
      read = take(read, end)
    },
    missing: () => Array.from({ length: end }, (_, offset) => offset).filter(offset => !has.has(offset)),
    start: () => start(committed, claims()),
    committed: () => committed,
  }
}

describe('a projector', () => {
  test('goes on where its group is on the tables that it wrote: after kills, rebalances and quiet months, beside another group', () => {
    fc.assert(
      fc.property(steps, all => {
        const world = createWorld()
        for (const step of all.filter(({ kind }) => kind !== 'away')) {
          world.do(step)
          expect(world.start()).toEqual({ at: world.committed() ?? 0, fault: undefined })
        }
      }),
    )
  })

  test('never refuses on them and misses nothing, also if all projectors were away for months', () => {
    fc.assert(
      fc.property(steps, all => {
        const world = createWorld()
        for (const step of all) {
          world.do(step)
          expect(world.start().fault).toBeUndefined()
        }
        world.readRest()
        expect(world.missing()).toEqual([])
      }),
    )
  })

  test('reads everything again that restored tables lack, also after kills on the way', () => {
    fc.assert(
      fc.property(steps, steps, steps, steps, (before, meanwhile, lost, after) => {
        const world = createWorld()
        for (const step of before) world.do(step)
        // The ledgers are copied first, and the batch log within the same day.
        const { has } = world.backup()
        for (const step of meanwhile.filter(({ kind }) => kind !== 'hours' && kind !== 'away')) world.do(step)
        const backup = { ...world.backup(), has }
        // Something happens after it. Otherwise the positions are the same, and cannot tell.
        world.do({ kind: 'append', records: 1 })
        world.do({ kind: 'hours', hours: 1 })
        for (const step of lost) world.do(step)
        world.restore(backup)
        // Projectors begin by asking the group where they are.
        world.do({ kind: 'rebalance' })
        for (const step of after.filter(({ kind }) => kind !== 'otherGroup')) world.do(step)
        world.readRest()
        expect(world.missing()).toEqual([])
      }),
    )
  })
})

describe('goes on where the group is', () => {
  test('if the tables have more: a kill before the commit, or another group', () => {
    expect(start(100, [claim(150, 0)])).toEqual({ at: 100, fault: undefined })
    expect(start(100, [claim(100, 0)])).toEqual({ at: 100, fault: undefined })
  })

  test('if the group is new, whatever the tables have, and whatever the log has deleted', () => {
    expect(start(undefined, [claim(150, 0)])).toEqual({ at: 0, fault: undefined })
    expect(start(undefined, [claim(150, 0)], { low: 200 })).toEqual({ at: 200, fault: undefined })
    expect(start(undefined, [], { history: { isFilled: false, areNoted: false } }).at).toBe(0)
  })

  test('if an earlier version filled the tables, and the partition had no batch for 30 days', () => {
    const history = { isFilled: true, areNoted: false }
    expect(start(100, [], { history })).toEqual({ at: 100, fault: undefined })
  })

  test('if another group began to read the log again, and the own batches are forgotten', () => {
    expect(start(100, [claim(100, 0), claim(20, 900)])).toEqual({ at: 100, fault: undefined })
  })

  test('if an operator set it to the first record, because what is deleted is not needed', () => {
    expect(start(300, [claim(100, 0)], { low: 300 })).toEqual({ at: 300, fault: undefined })
  })
})

describe('goes back', () => {
  test('to where the tables were a day before their last position: a backup copies one table after the other', () => {
    const claims = [claim(60, 0), claim(80, 80), claim(100, 95)]
    expect(start(500, claims)).toEqual({ at: 60, fault: undefined })
    // Rows of a projector that has begun to read again do not move that.
    expect(start(500, [...claims, claim(70, 200)])).toEqual({ at: 60, fault: undefined })
    // Once it has passed the restored position, everything before that is certain.
    expect(start(500, [...claims, claim(70, 200), claim(110, 201)])).toEqual({ at: 100, fault: undefined })
  })

  test('to the start, if the tables are new, younger than a day, or do not know the partition', () => {
    expect(start(500, [], { history: { isFilled: false, areNoted: false } }).at).toBe(0)
    expect(start(500, [claim(100, 5)]).at).toBe(0)
    expect(start(500, [], { low: 40 })).toEqual({ at: 40, fault: undefined })
  })

  test('not if the log no longer has the records: it names both positions, and skips nothing silently', () => {
    const { fault } = start(500, [claim(100, 0), claim(90, -100)], { low: 300 })
    expect(fault).toBe(
      'the group is at 500, but the tables have only what is before 100: they were restored from an older backup. The records ' +
        'before 300 are deleted',
    )
  })

  test('and says so', () => {
    expect(describeBehind(place, 500, { recorded: 100, from: 60 })).toBe(
      'the consumer group is at 500 of pledges/0, but the tables have everything before 100: they are new, or were restored from ' +
        'an older backup. The projector reads this partition again from 60',
    )
    expect(describeBehind(place, 500, { from: 0 })).toContain('the tables have nothing')
    expect(describeBehind(place, 500, { from: 0 })).toContain('from its start')
  })
})
