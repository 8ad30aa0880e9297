/**
 * A projector notices that its group is ahead of the tables, and goes back. In every healthy situation it goes on where the group
 * is. Both are shown on a small model of two partitions: what the log has, what the tables have, and what the group committed.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  behindOf,
  type Claim,
  describeBehind,
  type RecordHistory,
} from '../../../services/projector/recorded-positions.ts'
import { lostFault, startOf } from '../../../services/shared/event-log/kafka/offsets.ts'
import { recordedOf } from '../../support/recorded-claims.ts'
import { createGuardWorld, guardSteps, quickSteps } from '../../support/restore-guard-world.ts'

const runs = { numRuns: 500 }
const place = 'pledges/0'
const begun = { isFilled: true, hasBegun: true }

/** Where a projector begins, and why it cannot, if so. */
function start(
  committed: number | undefined,
  claims: readonly Claim[],
  { low = 0, history = begun }: { low?: number; history?: RecordHistory } = {},
): { at: number; fault: string | undefined } {
  const groups = new Map(committed === undefined ? [] : [[place, committed]])
  const behind = behindOf(groups, recordedOf(claims), history).get(place)
  return { at: startOf(committed, { low }, behind), fault: lostFault(committed, { low }, behind) }
}

const claim = (next: number, hour: number): Claim => ({ place, next, hour })

describe('a projector', () => {
  test('goes on where its group is on the tables that it wrote: after kills, rebalances, quiet months and deletions in the log', () => {
    fc.assert(
      fc.property(guardSteps, all => {
        const world = createGuardWorld()
        for (const step of all.filter(({ kind }) => kind !== 'away')) {
          world.do(step)
          expect(world.starts()).toEqual(world.healthyStarts())
        }
      }),
      runs,
    )
  })

  test('never refuses on them and misses nothing, also if all projectors were away for weeks', () => {
    fc.assert(
      fc.property(quickSteps, all => {
        const world = createGuardWorld()
        for (const step of all) {
          world.do(step)
          expect(world.faults()).toEqual([])
        }
        world.readRest()
        expect(world.missing()).toEqual([])
      }),
      runs,
    )
  })

  test('skips nothing silently if they were away for months', () => {
    fc.assert(
      fc.property(guardSteps, all => {
        const world = createGuardWorld()
        for (const step of all) world.do(step)
        if (world.faults().length > 0) return
        world.readRest()
        expect(world.missing()).toEqual([])
      }),
      runs,
    )
  })

  test('goes on where its group is after an upgrade from a version that noted no positions', () => {
    fc.assert(
      fc.property(guardSteps, guardSteps, (before, after) => {
        const world = createGuardWorld({ isOld: true })
        for (const step of before.filter(({ kind }) => kind !== 'otherGroup')) world.do(step)
        // An empty ledger is that of new tables: reading what it has of the log again costs nothing.
        fc.pre(world.isFilled())
        world.upgrade()
        expect(world.starts()).toEqual(world.healthyStarts())
        for (const step of after.filter(({ kind }) => kind !== 'away')) {
          world.do(step)
          expect(world.starts()).toEqual(world.healthyStarts())
        }
      }),
      runs,
    )
  })

  test('reads everything again that restored tables lack, also after kills on the way', () => {
    fc.assert(
      fc.property(guardSteps, guardSteps, guardSteps, guardSteps, (before, meanwhile, lost, after) => {
        const world = createGuardWorld()
        for (const step of before.filter(isKept)) world.do(step)
        // The ledgers are copied first, and the batch log within the same day.
        const { has } = world.backup()
        for (const step of meanwhile.filter(isKept)) {
          if (step.kind !== 'hours' && step.kind !== 'away') world.do(step)
        }
        const backup = { ...world.backup(), has }
        // Something happens after it. Otherwise the positions are the same, and cannot tell.
        for (const at of world.places) world.do({ kind: 'append', place: at, records: 1 })
        world.do({ kind: 'hours', hours: 1 })
        for (const step of lost.filter(isKept)) world.do(step)
        world.restore(backup)
        for (const step of after.filter(isKept)) {
          if (step.kind !== 'otherGroup') world.do(step)
        }
        world.readRest()
        expect(world.missing()).toEqual([])
      }),
      runs,
    )
  })

  test('fills new tables with all that the log has, whatever kills, rebalances and other members come on the way, and never refuses', () => {
    fc.assert(
      fc.property(guardSteps, quickSteps, (before, after) => {
        const world = createGuardWorld()
        for (const step of before) world.do(step)
        world.renew()
        for (const step of after.filter(({ kind }) => kind !== 'otherGroup')) {
          world.do(step)
          expect(world.faults()).toEqual([])
        }
        world.readRest()
        expect(world.missing()).toEqual([])
      }),
      { numRuns: 1_500 },
    )
  })
})

/** Not a deletion in the log: what it deletes after a backup is lost, and then a projector refuses. */
function isKept({ kind }: { kind: string }): boolean {
  return kind !== 'delete'
}

describe('goes on where the group is', () => {
  test('if the tables have more: a kill before the commit, or another group', () => {
    expect(start(100, [claim(150, 0)])).toEqual({ at: 100, fault: undefined })
    expect(start(100, [claim(100, 0)])).toEqual({ at: 100, fault: undefined })
  })

  test('if the group is new, whatever the tables have, and whatever the log has deleted', () => {
    expect(start(undefined, [claim(150, 0)])).toEqual({ at: 0, fault: undefined })
    expect(start(undefined, [claim(150, 0)], { low: 200 })).toEqual({ at: 200, fault: undefined })
    expect(start(undefined, [], { history: { isFilled: false, hasBegun: false } }).at).toBe(0)
  })

  test('if an earlier version filled the tables, and the partition had no batch for 30 days', () => {
    const history = { isFilled: true, hasBegun: false }
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
    for (const isFilled of [false, true]) {
      expect(start(500, [], { history: { isFilled, hasBegun: true } }).at).toBe(0)
    }
    expect(start(500, [], { history: { isFilled: false, hasBegun: false } }).at).toBe(0)
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
