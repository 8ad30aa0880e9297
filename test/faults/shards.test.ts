/**
 * Faults of one shard of a cluster, on real servers, with traffic running and readers asking all the time. While a shard is
 * away, an answer is whole, or comes from the cache, or is an error: nothing is ever left out, and no total is smaller. After each
 * fault the tables say what the events said, and a poller has missed nothing.
 *
 * PLEDGEVIEW_TEST_SEED repeats the events. The exact timing depends on the machine.
 */
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest'
import { localServices } from '../support/deployment/local-services.ts'
import { openStage, type Stage } from '../support/faults/stage.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { describeTheEnd } from './at-the-end.ts'
import { cutShardOff, killShards, turnClockBack } from './shard-faults.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
// On a busy machine each step takes several times as long.
const testMsMax = 900_000
// A fold statement on a shard also reads what the other shards have of the batch log.
const settings = { PLEDGEVIEW_FOLD_MS_MAX: '4000' }

describe(`two projectors and two query services on two shards, seed ${seed}`, { timeout: testMsMax }, () => {
  let requirement: Requirement
  let stage: Stage

  beforeAll(async () => {
    requirement = await localServices()
    if (requirement.isMet) stage = await openStage(seed, { shards: 2, settings, slowness: 4 })
  }, testMsMax)
  beforeEach(context => needs(context, requirement))
  afterAll(() => stage?.stop(), testMsMax)

  test('continue after each shard was killed, and never show less than there is', () =>
    stage.play('shards killed', () => killShards(stage)))

  test('do not take a shard that is cut off for an empty one', () =>
    stage.play('shard cut off', () => cutShardOff(stage)))

  test('hide no change from a poller when the clock of one shard is behind, and then right again', () =>
    stage.play('clock of a shard', () => turnClockBack(stage)))

  describeTheEnd(() => (requirement.isMet ? stage : undefined), testMsMax)
})
