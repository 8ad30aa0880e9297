import fc from 'fast-check'
import { expect, test } from 'vitest'
import { topics } from '../../../../contracts/events/event.ts'
import { createFetchBuffer } from '../../../../services/log/kafka/buffer.ts'
import type { LogRecord } from '../../../../services/log/port.ts'

type Step =
  | { kind: 'add'; topic: number; partition: number; sizes: number[] }
  | { kind: 'take'; recordsMax: number; bytesMax: number }

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('add' as const),
      topic: fc.nat(2),
      partition: fc.nat(2),
      sizes: fc.array(fc.nat(60), { maxLength: 12 }),
    }),
    fc.record({
      kind: fc.constant('take' as const),
      recordsMax: fc.integer({ min: 1, max: 20 }),
      bytesMax: fc.integer({ min: 1, max: 200 }),
    }),
  ),
  { maxLength: 60 },
)

test('every record is taken once, in the order of its partition, within the bounds, with the position behind it', () => {
  fc.assert(
    fc.property(steps, all => {
      const buffer = createFetchBuffer()
      const added = new Map<string, number>()
      const taken = new Map<string, number>()
      let held = 0
      const takeOnce = (recordsMax: number, bytesMax: number): void => {
        const { records, positions } = buffer.take({ recordsMax, bytesMax })
        expect(records.length).toBeLessThanOrEqual(recordsMax)
        if (records.length > 1) expect(bytesOf(records)).toBeLessThanOrEqual(bytesMax)
        expect(records.length > 0).toBe(held > 0)
        for (const { topic, partition, offset } of records) {
          expect(offset).toBe(taken.get(`${topic}/${partition}`) ?? 0)
          taken.set(`${topic}/${partition}`, offset + 1)
        }
        const behind = positions.map(({ topic, partition, next }): [string, number] => [
          `${topic}/${partition}`,
          next,
        ])
        const touched = new Set(records.map(({ topic, partition }) => `${topic}/${partition}`))
        expect(new Map(behind)).toEqual(new Map([...taken].filter(([name]) => touched.has(name))))
        held -= records.length
        expect(buffer.held().records).toBe(held)
      }
      for (const step of all) {
        if (step.kind === 'take') {
          takeOnce(step.recordsMax, step.bytesMax)
          continue
        }
        const topic = topics[step.topic] ?? 'pledges'
        const name = `${topic}/${step.partition}`
        const start = added.get(name) ?? 0
        buffer.add(step.sizes.map((size, index) => record(topic, step.partition, start + index, size)))
        added.set(name, start + step.sizes.length)
        held += step.sizes.length
      }
      while (held > 0) takeOnce(1_000, 1)
      expect(taken).toEqual(new Map([...added].filter(([, count]) => count > 0)))
      expect(buffer.held()).toEqual({ records: 0, bytes: 0 })
    }),
  )
})

test.each([
  { recordsMax: 1, bytesMax: 100_000 },
  { recordsMax: 100, bytesMax: 1 },
])('no partition starves, however tight a take is: %o', tight => {
  const buffer = createFetchBuffer()
  for (const partition of [0, 1, 2]) {
    buffer.add(Array.from({ length: 50 }, (_, offset) => record('pledges', partition, offset, 10)))
  }
  const seen = Array.from({ length: 30 }, () => buffer.take(tight).records).flat()
  for (const partition of [0, 1, 2]) {
    expect(seen.filter(found => found.partition === partition).length).toBeGreaterThanOrEqual(9)
  }
})

test('the bytes of a record are those of its key, its value and all values of its headers', () => {
  const buffer = createFetchBuffer()
  const [once, twice] = [Buffer.alloc(1_000), [Buffer.alloc(300), Buffer.alloc(400)]]
  const headers = { once, twice: twice[1] as Buffer }
  buffer.add([
    { ...record('pledges', 0, 0, 10), key: Buffer.alloc(5), headers, repeatedHeaders: { twice } },
    record('pledges', 0, 1, 10),
  ])
  expect(buffer.held()).toEqual({ records: 2, bytes: 1_725 })
  expect(buffer.take({ recordsMax: 10, bytesMax: 1_720 }).records).toHaveLength(1)
  expect(buffer.held()).toEqual({ records: 1, bytes: 10 })
})

function record(topic: LogRecord['topic'], partition: number, offset: number, size: number): LogRecord {
  return { topic, partition, offset, appendedAt: 0, key: null, value: Buffer.alloc(size) }
}

function bytesOf(records: readonly LogRecord[]): number {
  return records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
}
