/**
 * Faults on real services, with traffic running and readers asking all the time. After each fault, the tables say what the
 * events said. At no time is anything served that is wrong, incomplete or unknown (see test/support/faults).
 *
 * PLEDGEVIEW_TEST_SEED repeats the events, the faults and their order. The exact timing depends on the machine.
 */
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest'
import { localServices } from '../support/deployment/local-services.ts'
import { openStage, type Stage } from '../support/faults/stage.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { describeTheEnd } from './at-the-end.ts'
import { killProjectors, poisonBelowGate, rebalanceDuringFlush, stallFoldWorker } from './projector-faults.ts'
import { rebuildUnderKills } from './rebuild-faults.ts'
import { killBroker, slowClickHouseDown, takeClickHouseAway, takeRedisAway } from './service-faults.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
// On a busy machine each step takes several times as long: a test waits several times, for minutes each time.
const testMsMax = 900_000

describe(`two projectors and two query services, seed ${seed}`, { timeout: testMsMax }, () => {
  let requirement: Requirement
  let stage: Stage

  beforeAll(async () => {
    requirement = await localServices()
    if (requirement.isMet) stage = await openStage(seed, { slowness: 2 })
  }, testMsMax)
  beforeEach(context => needs(context, requirement))
  afterAll(() => stage?.stop(), testMsMax)

  test('lose nothing when projectors are killed at any moment', () =>
    stage.play('kill -9 of projectors', () => killProjectors(stage)))

  test('continue after the broker was killed', () => stage.play('broker killed', () => killBroker(stage)))

  test('continue after ClickHouse was unavailable, or silent, for longer than the session', () =>
    stage.play('ClickHouse away', () => takeClickHouseAway(stage)))

  test('answer and limit while Redis is unavailable, or silent, and after', () =>
    stage.play('Redis away', () => takeRedisAway(stage)))

  test('hide no change from a poller when folds end long after their stamp', () =>
    stage.play('slow ClickHouse', () => slowClickHouseDown(stage)))

  test('write a batch again that a rebalance overtook', () =>
    stage.play('rebalance during a flush', () => rebalanceDuringFlush(stage)))

  test('write nothing for a fold worker that lost leadership while it was stopped', () =>
    stage.play('stalled fold worker', () => stallFoldWorker(stage)))

  test('are rebuilt through kills of any process, and no reader notices', () =>
    stage.play('rebuild', () => rebuildUnderKills(stage)))

  test('keep a few records that are not events, and continue', () =>
    stage.play('poison below the gate', () => poisonBelowGate(stage)))

  describeTheEnd(() => (requirement.isMet ? stage : undefined), testMsMax)
})
