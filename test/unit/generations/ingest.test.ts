/** Reading up to a position, over rebalances of the reader's group. */
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ingestTo } from '../../../services/generations/ingest.ts'
import type { EventReader } from '../../../services/log/port.ts'
import type { ProjectorDependencies } from '../../../services/projector/projector.ts'
import { createMemoryLog, type MemoryLog } from '../../support/events/memory-log.ts'
import { ingestDependencies, insertsOnly } from '../../support/projector/ingest-loop.ts'

const partitions = 3

type Step =
  | { kind: 'append'; partition: number }
  | { kind: 'lose'; partition: number }
  | { kind: 'reassign' }
  | { kind: 'wait'; ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('append' as const), partition: fc.nat(partitions - 1) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('lose' as const), partition: fc.nat(partitions - 1) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reassign' as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(3) }) },
)

test('leaves out no record before the position, over rebalances that repeat records and that take partitions away', async () => {
  const rounds = fc.integer({ min: 1, max: 4 })
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), rounds, async (steps, roundsMax) => {
    const log = createMemoryLog()
    for (let partition = 0; partition < partitions; partition++) append(log, partition)
    const read = new Set<string>()
    const others = happen(log, steps)
    for (let round = 0; round < roundsMax; round++) {
      const target = log.ends()
      await ingestTo(dependenciesOf(log, read), target, new AbortController().signal, () => {})
      const before = target.flatMap(({ topic, partition, next }) =>
        Array.from({ length: next }, (_, offset) => `${topic}/${partition} ${offset}`),
      )
      expect(before.filter(place => !read.has(place))).toEqual([])
    }
    await others
  })
  await fc.assert(property, { numRuns: 30 })
}, 120_000)

test.each([
  ['if the log does not answer', () => new Promise<never>(() => {})],
  ['while there is something left to read', undefined],
])('ends when it is interrupted, also %s', async (_, lag) => {
  const log = createMemoryLog()
  for (let partition = 0; partition < partitions; partition++) append(log, partition)
  log.lose(1)
  const reader: EventReader = { ...log.reader, ...(lag && { lag }) }
  const interruption = new AbortController()
  const dependencies = { ...dependenciesOf(log, new Set()), reader }
  const reading = ingestTo(dependencies, log.ends(), interruption.signal, () => {})
  await expect.poll(() => log.committed()).toMatchObject({ 'campaigns/0': 1, 'campaigns/2': 1 })
  interruption.abort(new Error('interrupted'))
  await expect(reading).rejects.toThrow('interrupted')
})

/** At the end the reader holds all partitions: the group has dropped the member whose process has ended. */
async function happen(log: MemoryLog, steps: readonly Step[]): Promise<void> {
  for (const one of steps) {
    if (one.kind === 'append') append(log, one.partition)
    else if (one.kind === 'lose') log.lose(one.partition)
    else if (one.kind === 'reassign') log.reassign()
    else await (one.ms === 0 ? setImmediate() : delay(one.ms))
  }
  log.reassign()
}

function append(log: MemoryLog, partition: number): void {
  log.append([{ topic: 'campaigns', key: Buffer.from('c'), value: Buffer.from('x') }], { partition })
}

function dependenciesOf(log: MemoryLog, read: Set<string>): ProjectorDependencies {
  return ingestDependencies({
    reader: log.reader,
    tables: insertsOnly(() => delay(1)),
    storesRejects: false,
    decode({ topic, partition, offset }) {
      read.add(`${topic}/${partition} ${offset}`)
      return { reason: 'it is not an event' }
    },
    circuitBreaker: { PLEDGEVIEW_REJECT_SHARE_MAX: 1, PLEDGEVIEW_REJECTS_MIN: 1_000 },
    settings: { batchRecordsMax: 10, batchMsMax: 2, idleMsMax: 5, retryMsMax: 10_000 },
    clock: { monotonicMs: () => performance.now(), sleep: ms => delay(ms) },
  })
}
