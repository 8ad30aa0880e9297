/** The age of what is not committed: right for records that were read, and never unknown for those that were not. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Delivery, SupersededAssignment } from '../../../../services/log/port.ts'
import { watchUncommitted } from '../../../../services/projector/freshness/uncommitted.ts'
import { createMemoryLog } from '../../../support/events/memory-log.ts'
import { campaignEvent, newRecordOf } from '../../../support/events/sample-events.ts'

const record = newRecordOf(campaignEvent({ campaign_id: 'a' }))
const never = new AbortController().signal

type Step =
  | { does: 'append'; partition: number; count: number; olderMs: number }
  | { does: 'skip' | 'lose'; partition: number }
  | { does: 'poll'; recordsMax: number }
  | { does: 'commit' | 'reassign' | 'look' }

const partition = fc.integer({ min: 0, max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('append' as const),
      partition,
      count: fc.integer({ min: 1, max: 4 }),
      // Producers may set the times, so they need not grow.
      olderMs: fc.integer({ min: 0, max: 50 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ does: fc.constant('poll' as const), recordsMax: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom('commit' as const, 'look' as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('skip' as const, 'lose' as const), partition }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('reassign' as const) }) },
)

test('in any order of reads, commits and rebalances, the age is that of the oldest record that waits', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async steps => {
      let now = 1_000_000
      const log = createMemoryLog()
      const times = new Map<string, (number | undefined)[]>()
      const watched = watchUncommitted(log.reader, () => now)
      const deliveries: Delivery[] = []
      /** The records that were read under the present assignment. */
      let read = new Map<string, number>()
      for (const taken of steps) {
        now += 10
        switch (taken.does) {
          case 'append': {
            const name = `campaigns/${taken.partition}`
            const appendedAt = now - taken.olderMs
            const added = Array.from({ length: taken.count }, () => appendedAt)
            times.set(name, [...(times.get(name) ?? []), ...added])
            log.append(
              added.map(() => record),
              { partition: taken.partition, appendedAt },
            )
            break
          }
          case 'skip': {
            const name = `campaigns/${taken.partition}`
            times.set(name, [...(times.get(name) ?? []), undefined])
            log.skip('campaigns', taken.partition, 1)
            break
          }
          case 'poll': {
            const delivery = await watched.reader.poll(
              { recordsMax: taken.recordsMax, bytesMax: 1e9, waitMsMax: 0 },
              never,
            )
            deliveries.push(delivery)
            for (const { topic, partition: of, next } of delivery.positions) read.set(`${topic}/${of}`, next)
            break
          }
          case 'commit': {
            const oldest = deliveries.shift()
            if (!oldest) break
            await watched.reader.commit(oldest.assignment, oldest.positions).catch((error: Error) => {
              expect(error).toBeInstanceOf(SupersededAssignment)
            })
            break
          }
          case 'lose':
          case 'reassign':
            if (taken.does === 'lose') log.lose(taken.partition)
            else log.reassign()
            read = new Map()
            // The projector reads again before it commits.
            deliveries.length = 0
            break
          case 'look':
            break
          default:
            taken satisfies never
        }
        const lag = await watched.reader.lag()
        const found = new Map(watched.oldest().map(of => [`${of.topic}/${of.partition}`, of.waitsSince]))
        expect([...found.keys()].toSorted()).toEqual(lag.map(of => `${of.topic}/${of.partition}`).toSorted())
        for (const { topic, partition: of, committed, end } of lag) {
          const name = `${topic}/${of}`
          const since = found.get(name)
          if (committed >= end) {
            expect(since).toBeUndefined()
            continue
          }
          expect(since).toBeLessThanOrEqual(now)
          const waiting = (times.get(name) ?? []).slice(committed)
          const oldest = waiting.slice(0, (read.get(name) ?? 0) - committed).filter(at => at !== undefined)
          if ((read.get(name) ?? 0) > committed && oldest.length > 0) expect(since).toBe(Math.min(...oldest))
        }
      }
    }),
    { numRuns: 200 },
  )
})

describe('a reader that is stuck before it reads', () => {
  test('has an age that grows from the first look on, until the record is committed', async () => {
    let now = 1_000
    const log = createMemoryLog()
    const { reader, oldest } = watchUncommitted(log.reader, () => now)
    log.append([record], { appendedAt: 500 })
    await reader.lag()
    now = 61_000
    log.append([record], { appendedAt: 60_500 })
    await reader.lag()
    expect(oldest()).toEqual([{ topic: 'campaigns', partition: 0, waitsSince: 1_000 }])
    const first = await reader.poll({ recordsMax: 1, bytesMax: 1e9, waitMsMax: 0 }, never)
    // The log's own time is known now.
    expect(oldest()[0]?.waitsSince).toBe(500)
    await reader.commit(first.assignment, first.positions)
    expect(oldest()[0]?.waitsSince).toBe(61_000)
    const second = await reader.poll({ recordsMax: 1, bytesMax: 1e9, waitMsMax: 0 }, never)
    await reader.commit(second.assignment, second.positions)
    expect(oldest()[0]?.waitsSince).toBeUndefined()
  })
})
