/**
 * Faults on real services, with traffic running and readers asking all the time. After each, the tables are what was
 * said; and at no moment is anything served that is wrong, half or unheard of (test/support/faults says what that is).
 *
 * PLEDGEVIEW_TEST_SEED repeats what is said, asked and struck, and in which order; how it falls in time is the machine's.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { defaultDatabases } from '../../services/shared/tables/port.ts'
import { timeless } from '../support/faults/api-projects.ts'
import { appendedPoison, keptRejects, positionsAndEnds } from '../support/faults/log-checks.ts'
import { cacheMs, openStage, type Stage } from '../support/faults/stage.ts'
import { foldFaults, noFoldFaults } from '../support/fold-records.ts'
import { keyHeaders } from '../support/query-app.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { localServices } from '../support/stack.ts'
import { poisonAboveGate, poisonBelowGate } from './poison-faults.ts'
import { killProjectors, rebalanceDuringFlush, stallFolder } from './projector-faults.ts'
import { rebuildUnderKills } from './rebuild-faults.ts'
import { killBroker, slowClickHouseDown, takeClickHouseAway, takeRedisAway } from './service-faults.ts'
import { untilStatus } from './watch.ts'

const seed = process.env.PLEDGEVIEW_TEST_SEED ?? '20180101'
const testMsMax = 240_000

describe(`two projectors and two query services, seed ${seed}`, { timeout: testMsMax }, () => {
  let requirement: Requirement
  let stage: Stage

  beforeAll(async () => {
    requirement = await localServices()
    if (requirement.isMet) stage = await openStage(seed)
  }, testMsMax)
  beforeEach(context => needs(context, requirement))
  afterAll(() => stage?.stop(), testMsMax)

  test('lose nothing when projectors are killed at any moment', () =>
    stage.play('kill -9 of projectors', () => killProjectors(stage)))

  test('go on when the broker was killed', () => stage.play('broker killed', () => killBroker(stage)))

  test('go on when ClickHouse was away, or silent, for longer than the session', () =>
    stage.play('ClickHouse away', () => takeClickHouseAway(stage)))

  test('answer and limit while Redis is away, or silent, and after', () =>
    stage.play('Redis away', () => takeRedisAway(stage)))

  test('hide no change from a poller when folds end beyond the commit horizon', () =>
    stage.play('slow ClickHouse', () => slowClickHouseDown(stage)))

  test('write a batch again that a rebalance overtook', () =>
    stage.play('rebalance during a flush', () => rebalanceDuringFlush(stage)))

  test('write nothing for a folder that lost its place while it stood still', () =>
    stage.play('stalled folder', () => stallFolder(stage)))

  test('are rebuilt beside, whoever is killed, and nobody outside notices', () =>
    stage.play('rebuild', () => rebuildUnderKills(stage)))

  test('keep a few records that are no events, and go on', () =>
    stage.play('poison below the gate', () => poisonBelowGate(stage)))

  test('stop at a burst of records that are no events, and keep them all when told to go on', () =>
    stage.play('poison above the gate', () => poisonAboveGate(stage)))

  test('follow the keys of an account: the three oldest, without the revoked one', async () => {
    const { keys, traffic, client, apiUrls } = stage
    const issued = Array.from({ length: 5 }, () => keys.issue('late'))
    await traffic.say(issued.map(({ event }) => event))
    await stage.settled()
    await traffic.say([keys.revoke(issued[1]?.credentials.key ?? '')])
    await stage.settled()
    for (const url of apiUrls) {
      for (const [n, { credentials }] of issued.entries()) {
        const headers = keyHeaders(credentials)
        const expected = [0, 2, 3].includes(n) ? 200 : 401
        await untilStatus(() => client.ask(`${url}/stats`, [200, 401], { headers }), expected)
      }
    }
  })

  describe('at the end', () => {
    beforeAll(async () => {
      await stage.settled()
      await stage.traffic.pause()
    }, testMsMax)

    test('every page of both is what was said, and so is the copy of a poller', async () => {
      const expected = stage.expectedWalk()
      for (const url of stage.apiUrls) {
        // Once what is in the cache has had its time.
        const asSaid = async () => expect(await stage.walk(url)).toEqual(expected)
        await vi.waitFor(asSaid, { timeout: 10 * cacheMs, interval: 200 })
      }
      await stage.mirror.stop()
      await stage.mirror.catchUp()
      const copies = stage.mirror.campaigns()
      const copied = expected.map(({ id }) => copies.get(id)).map(copy => copy && timeless(copy))
      expect(copied).toEqual(expected)
      expect(stage.client.faults()).toEqual([])
      console.log(`a poller walked ${stage.mirror.walks()} times and holds ${copies.size} campaigns`)
    })

    test('every record that is no event is among the rejects, with its bytes', async () => {
      const { kafka } = stage.services.addresses
      const { kept, messages } = await keptRejects(kafka)
      expect(kept).toEqual(await appendedPoison(kafka, stage.traffic.poisoned()))
      expect(new Set(Object.values(kept)).size).toBe(stage.traffic.poisoned().length)
      console.log(`${Object.keys(kept).length} rejects in ${messages} messages`)
    })

    test('the group stands at the end of the log', () =>
      vi.waitFor(
        async () => {
          const { positions, ends } = await positionsAndEnds(stage.services.addresses.kafka)
          expect(positions).toEqual(ends)
        },
        { timeout: 30_000, interval: 200 },
      ))

    test('no fold was made under an epoch of another, and no batch is missing', async () => {
      // A rebuild takes epochs above those of both generations.
      expect({ ...(await foldFaults(stage.tables, defaultDatabases)), epochs: [] }).toEqual(noFoldFaults)
    })
  })
})
