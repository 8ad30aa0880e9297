import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Header, LogRecord } from '../../../services/log/port.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'
import {
  createRejectStore,
  headerBytesMax,
  keyBytesMax,
  placeName,
  valueBytesMax,
} from '../../../services/tables/rejects.ts'
import {
  countReasons,
  latestRejects,
  rejectCounts,
  type StoredReject,
  walkRejects,
} from '../../../services/tables/stored-rejects.ts'
import {
  anyFilter,
  placesAskedFor,
  placesOf,
  rejectsOf,
  startedAt,
  storeAt,
} from '../../support/projector/reject-filters.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

describe('the table of rejects', () => {
  const model = useModelTables()
  let databases: Databases
  let source: { tables: Tables; databases: Databases }

  beforeEach(async () => {
    databases = await model.freshDatabases()
    source = { tables: model.tables, databases }
  })

  const month = 30 * 86_400_000
  const store = (now: number, keptMs = 1_000 * month) =>
    createRejectStore({ ...source, keptMs, now: () => now })

  test('keeps a record of any size, with its place and its sizes: whole, or cut where it must be', async () => {
    const size = fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(0, 1, 900) },
      { weight: 2, arbitrary: fc.constantFrom(keyBytesMax, keyBytesMax + 1, headerBytesMax, 900_000) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(valueBytesMax, valueBytesMax + 1, 12 * 900_000, 16 * 1024 ** 2),
      },
    )
    const shape = fc.record({
      key: fc.option(size),
      value: fc.option(size),
      headers: fc.array(size, { maxLength: 3 }),
      small: fc.constantFrom(0, 1_000),
    })
    // Together they had more than a list may have, before they were cut.
    const largest: Shape = { key: 900_000, value: 16 * 1024 ** 2, headers: [16 * 1024 ** 2], small: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(shape, { minLength: 1, maxLength: 4 }), async shapes => {
        await model.tables.run({ query: `TRUNCATE TABLE ${databases.base}.rejects` })
        const records = shapes.map((one, offset) => recordOf(one, offset))
        await store(startedAt)(
          'cluster',
          records.map(record => ({ record, reason: 'not wanted' })),
        )
        const kept = await latestRejects(source, { places: records }, 100)
        expect(placesOf(kept).toSorted()).toEqual(records.map(placeName).toSorted())
        for (const reject of kept) expectKept(reject, records[reject.record.offset] as LogRecord)
      }),
      { numRuns: 15, examples: [[Array.from({ length: 4 }, () => largest)]] },
    )
  }, 240_000)

  /** What is kept of the record is all of it, or its beginning. */
  function expectKept({ record, reason, rejectedAt, sizes }: StoredReject, original: LogRecord): void {
    expect({ reason, rejectedAt }).toEqual({ reason: 'not wanted', rejectedAt: startedAt })
    expect(record.appendedAt).toBe(original.appendedAt)
    const beginning = (bytes: Uint8Array | null, max: number) =>
      bytes && Buffer.from(bytes).subarray(0, max).toString('latin1')
    expect(beginning(record.key, Infinity)).toBe(beginning(original.key, keyBytesMax))
    expect(beginning(record.value, Infinity)).toBe(beginning(original.value, valueBytesMax))
    const bytesOf = (headers: readonly Header[]) =>
      headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
    const all = original.headers ?? []
    const bytes = bytesOf(all)
    expect(bytesOf(record.headers ?? [])).toBeLessThanOrEqual(headerBytesMax)
    expect(sizes).toEqual({
      key: original.key?.length ?? 0,
      value: original.value?.length ?? 0,
      headers: bytes,
    })
    const textOf = ([name, value]: Header) => `${name}=${Buffer.from(value).toString('latin1')}`
    const texts = (record.headers ?? []).map(textOf)
    const originals = all.map(textOf)
    if (bytes <= headerBytesMax) expect(texts).toEqual(originals)
    else expect(originals.filter(one => texts.includes(one))).toEqual(texts)
  }

  test('keeps a record once, with the first time and reason, however often it is read', async () => {
    const rejects = rejectsOf(30, 2)
    await store(startedAt)('', rejects)
    await store(startedAt + 5)('', rejects.toReversed())
    await store(startedAt + 9)(
      '',
      rejects.map(({ record }) => ({ record, reason: 'another reason' })),
    )
    await store(startedAt + 9)('', [])
    expect((await rejectCounts(source)).total).toBe(30)
    const kept = await latestRejects(source, {}, 100)
    expect(new Set(kept.map(({ rejectedAt }) => rejectedAt))).toEqual(new Set([startedAt]))
    expect(kept.map(({ reason }) => reason)).not.toContain('another reason')
    await model.tables.run({ query: `OPTIMIZE TABLE ${databases.base}.rejects FINAL` })
    expect(await latestRejects(source, {}, 100)).toEqual(kept)
  })

  test('keeps records of one place apart if they are of other clusters, or of a topic that was made anew', async () => {
    const [reject] = rejectsOf(1, 1)
    if (!reject) throw new Error('there is none')
    await store(startedAt)('first', [reject])
    await store(startedAt + 1)('second', [{ ...reject, reason: 'of the second' }])
    const anew = { ...reject.record, appendedAt: reject.record.appendedAt + 1 }
    await store(startedAt + 2)('second', [{ record: anew, reason: 'of the new topic' }])
    expect((await rejectCounts(source)).total).toBe(3)
    expect(await latestRejects(source, { places: [reject.record] }, 100)).toMatchObject([
      ...[{ reason: 'of the new topic' }, { reason: 'of the second' }],
      { reason: expect.any(String) },
    ])
  })

  test('selects by every filter exactly what a plain search selects, in every way of reading', async () => {
    const rejects = rejectsOf(1_400, 3)
    await storeAt(model.tables, databases, rejects)
    await fc.assert(
      fc.asyncProperty(anyFilter, fc.constantFrom(1, 7, 10_000), async (filter, limit) => {
        const expected = placesAskedFor(rejects, filter)
        expect((await rejectCounts(source, filter)).total).toBe(expected.length)
        const walked: StoredReject[] = []
        for await (const part of walkRejects(source, filter)) walked.push(...part)
        expect(placesOf(walked).toSorted()).toEqual(expected.toSorted())
        const latest = await latestRejects(source, filter, limit)
        expect(latest).toHaveLength(Math.min(limit, expected.length))
        const times = latest.map(({ rejectedAt }) => rejectedAt)
        expect(times).toEqual(times.toSorted((a, b) => b - a))
        if (limit === 10_000) expect(placesOf(latest).toSorted()).toEqual(expected.toSorted())
        const { matched, counts } = await countReasons(source, filter, 100)
        expect(matched).toBe(expected.length)
        expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(expected.length)
      }),
      { numRuns: 30 },
    )
  }, 120_000)

  test('keeps any bytes, any header name and any time of a producer', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
    const names = ['__proto__', 'constructor', '', 'ü'.repeat(40), '\u0000']
    const record: LogRecord = {
      ...{ topic: 'pledges', partition: 4_294_967_295, offset: Number.MAX_SAFE_INTEGER - 1 },
      ...{ appendedAt: Number.MAX_SAFE_INTEGER, key: bytes, value: bytes },
      headers: [...names, ''].map(name => [name, bytes]),
    }
    await store(startedAt)('', [{ record, reason: `"\u0000\\'\ud83d${'x'.repeat(9_999)}` }])
    const [kept] = await latestRejects(source, { places: [record] }, 100)
    if (!kept) throw new Error('it is not kept')
    expect(Buffer.from(kept.record.key ?? [])).toEqual(bytes)
    expect(Buffer.from(kept.record.value ?? [])).toEqual(bytes)
    expect(kept.record.headers).toEqual(record.headers)
    expect(kept.reason).toHaveLength(2_000)
  })

  test('lists at most 64 MiB, and walks in parts that fit into memory', async () => {
    const value = Buffer.alloc(4_000_000, 'x')
    const rejects = Array.from({ length: 20 }, (_, offset) => ({
      record: { topic: 'pledges', partition: 0, offset, appendedAt: 1, key: null, value } as const,
      reason: 'large',
    }))
    await store(startedAt)('', rejects)
    expect(await latestRejects(source, {}, 100)).toHaveLength(16)
    const parts: number[] = []
    for await (const part of walkRejects(source, {})) parts.push(part.length)
    expect(Math.max(...parts)).toBe(2)
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(20)
  }, 60_000)

  test('forgets a reject when its time is over, and none before', async () => {
    await store(Date.now() - month - 60_000, month)('', rejectsOf(3, 1))
    await store(Date.now(), month)('', rejectsOf(4, 1).slice(3))
    await model.tables.run({ query: `OPTIMIZE TABLE ${databases.base}.rejects FINAL` })
    expect((await rejectCounts(source)).total).toBe(1)
  })
})

interface Shape {
  key: number | null
  value: number | null
  headers: number[]
  /** How many more headers of a few bytes. They take turns with ten names. */
  small: 0 | 1_000
}

function recordOf({ key, value, headers, small }: Shape, offset: number): LogRecord {
  const bytes = (length: number | null, letter: string) =>
    length === null ? null : Buffer.alloc(length, letter)
  const large = headers.map((length, n) => [`large ${n}`, Buffer.alloc(length, `${n}`)] as const)
  const many = Array.from({ length: small }, (_, n) => [`small ${n % 10}`, Buffer.from([n % 256])] as const)
  const all = [...large, ...many]
  return {
    ...{ topic: 'pledges', partition: 3, offset, appendedAt: startedAt - offset },
    ...{ key: bytes(key, 'k'), value: bytes(value, '\xff') },
    ...(all.length > 0 && { headers: all }),
  }
}
