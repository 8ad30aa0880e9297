/**
 * Two short worlds of `npm run prove` with fixed seeds: real processes under faults, and a checker that reads every answer that any
 * reader got (checker/check.ts). PLEDGEVIEW_TEST_SEED plays other events and moments.
 */
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { localServices } from '../support/deployment/local-services.ts'
import { needs, type Requirement } from '../support/runner/requirements.ts'
import { playWorld } from './world.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
// On a busy machine each step takes several times as long: a world waits several times, for minutes each time.
const testMsMax = 1_500_000

let requirement: Requirement
beforeAll(async () => {
  requirement = await localServices()
}, testMsMax)
beforeEach(context => needs(context, requirement))

test.each([
  { shards: undefined, faults: ['killClickHouse', 'rebuildThroughKill', 'revokeKeys'] },
  { shards: 2, faults: ['killOtherShard', 'askTooMuch'] },
])('on $shards shards: $faults', { timeout: testMsMax }, async ({ shards, faults }) => {
  const { violations, failure, played, counts, seconds } = await playWorld({ seed, shards, faults })
  console.log(`${JSON.stringify(counts)}, ${Math.round(seconds)} s`)
  expect(violations.slice(0, 5)).toEqual([])
  expect(failure).toBeUndefined()
  expect(played).toEqual(faults)
  expect(counts.lists, 'lists with several pages, which are of one snapshot').toBeGreaterThan(0)
})
