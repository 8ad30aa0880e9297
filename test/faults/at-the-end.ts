/** What has to hold when a fault suite is over. */

import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { type TimelessProject, timeless } from '../support/faults/api-projects.ts'
import { appendedPoison, keptRejects, positionsAndEnds } from '../support/faults/log-checks.ts'
import { cacheMs, type Stage } from '../support/faults/stage.ts'
import { foldFaults, noFoldFaults } from '../support/projector/fold-records.ts'
import { currentOf } from './watch.ts'

/** `opened` returns `undefined` if what the stage needs is not installed. Then the suite skips these tests. */
export function describeTheEnd(opened: () => Stage | undefined, msMax: number): void {
  describe('at the end', () => {
    let stage: Stage

    beforeAll(async () => {
      const found = opened()
      if (!found) return
      stage = found
      // What is said after that would not be in the tables yet.
      await stage.settled({ staysPaused: true })
    }, msMax)

    test('every page of both is what was said, and so is the copy of a poller', async () => {
      const expected = stage.expectedWalk()
      for (const url of stage.apiUrls) {
        // When everything in the cache has expired.
        const asSaid = async () => {
          const walked = await stage.walk(url)
          expect(walked, differing(walked, expected)).toEqual(expected)
        }
        await vi.waitFor(asSaid, { timeout: 60_000, interval: cacheMs })
      }
      await stage.mirror.stop()
      await stage.mirror.catchUp()
      const copies = stage.mirror.campaigns()
      const copied = expected.map(({ id }) => copies.get(id)).map(copy => copy && timeless(copy))
      expect(copied, differing(copied, expected)).toEqual(expected)
      expect(stage.client.faults()).toEqual([])
      console.log(`a poller walked ${stage.mirror.walks()} times and holds ${copies.size} campaigns`)
    })

    test('every record that is not an event is among the rejects, with its bytes', async () => {
      const { kafka } = stage.services.addresses
      const kept = await keptRejects(stage)
      expect(kept).toEqual(await appendedPoison(kafka, stage.traffic.poisoned()))
      expect(new Set(Object.values(kept)).size).toBe(stage.traffic.poisoned().length)
      console.log(`${Object.keys(kept).length} rejects`)
    })

    test('the group has reached the end of the log', () =>
      vi.waitFor(
        async () => {
          const { positions, ends } = await positionsAndEnds(stage.services.addresses.kafka)
          expect(positions).toEqual(ends)
        },
        { timeout: 30_000, interval: 200 },
      ))

    test('no fold was made under a superseded epoch, and no batch is missing', async () => {
      // A rebuild takes epochs above those of the generation from before.
      const current = await currentOf(stage.tables)
      for (const { tables } of stage.folded)
        expect({ ...(await foldFaults(tables, current)), epochs: [] }).toEqual(noFoldFaults)
    })
  })
}

/** The first campaigns that differ, on both sides, for a failure that happens only in CI. */
function differing(
  actual: readonly (TimelessProject | undefined)[],
  expected: readonly TimelessProject[],
): string {
  const found = new Map(actual.map(row => [row?.id, row]))
  const others = expected.filter(row => !isDeepStrictEqual(found.get(row.id), row))
  const shown = others
    .slice(0, 2)
    .map(row => `${JSON.stringify(found.get(row.id))} instead of ${JSON.stringify(row)}`)
  return `${actual.length} of ${expected.length} campaigns, ${others.length} differ: ${shown.join('; ')}`
}
