/** Our decoder of record batches: it reads what kafkajs reads, and nothing that it is given stops or exhausts it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toLogRecord, writeHeaders } from '../../../../../services/log/kafka/record.ts'
import { batchBytesMax, compressions } from '../../../../../services/log/kafka/repairs/codecs.ts'
import {
  batchPartsMax,
  type Decoded,
  decodeBatches,
  type FetchedMessage,
  recordBytesMax,
} from '../../../../../services/log/kafka/repairs/record-batches.ts'
import { type BatchRecord, readByKafkajs, writeBatch } from '../../../../support/kafka/record-batch.ts'

const headBytes = 61
const inherited = ['toString', '__proto__', 'constructor', 'hasOwnProperty', 'valueOf', 'isPrototypeOf']

const bytes = fc.uint8Array({ maxLength: 40 }).map(array => Buffer.from(array))
const records: fc.Arbitrary<BatchRecord[]> = fc.array(
  fc.record({
    key: fc.option(bytes),
    value: fc.option(bytes),
    timestampDelta: fc.integer({ min: -1e12, max: 1e12 }),
    headers: fc
      .array(fc.tuple(fc.string({ maxLength: 5 }), fc.array(bytes, { minLength: 2, maxLength: 3 })), {
        maxLength: 4,
      })
      .map(entries => Object.fromEntries(entries)),
  }),
  { minLength: 1, maxLength: 20 },
)
const compression = fc.constantFrom(...compressions)

describe('decoding record batches', () => {
  test('gives what kafkajs gives, for any records and every compression', async () => {
    await fc.assert(
      fc.asyncProperty(records, compression, fc.nat(2 ** 40), async (written, packing, firstOffset) => {
        const batch = await writeBatch({ records: written, compression: packing, firstOffset })
        const expected = await readByKafkajs(batch)
        const decoded = await decodeBatches(Buffer.concat([batch, batch]), nothing())
        const fields = ({ offset, timestamp, key, value, headers }: FetchedMessage) => ({
          ...{ offset, timestamp, key, value },
          headers: Array.isArray(headers) ? writeHeaders(headers) : { ...headers },
        })
        expect(decoded.map(fields)).toEqual(
          [...expected, ...expected].map(found => fields(found as FetchedMessage)),
        )
      }),
      { numRuns: 300 },
    )
  })

  test('never fails on damaged bytes, and always ends at the last offset of the batch', async () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(records, compression, changes, async (written, packing, damage) => {
        const batch = await writeBatch({ records: written, compression: packing, firstOffset: 100 })
        for (const [at, byte] of damage) batch[headBytes - 4 + (at % (batch.length - headBytes + 4))] = byte
        expectWhole(await decodeBatches(batch, nothing()), 100, 100 + written.length - 1)
      }),
      { numRuns: 700 },
    )
  })

  test('names the compression that does not exist, and the place of a damaged record', async () => {
    const unknown = batchOf(Buffer.alloc(20), { attributes: 6, count: 1 })
    expect(await decodeBatches(unknown, nothing())).toMatchObject([
      {
        unreadable: { reason: 'the batch of offsets 100 to 109 cannot be read: its compression is unknown' },
      },
    ])
    const batch = await writeBatch({ records: [small(0), small(1), small(2)], firstOffset: 7 })
    const cut = batch.subarray(0, -3)
    cut.writeInt32BE(cut.length - 12, 8)
    const decoded = await decodeBatches(cut, nothing())
    expect(decoded.map(({ offset, unreadable }) => [offset, unreadable?.reason])).toEqual([
      ['7', undefined],
      ['8', undefined],
      ['9', 'the batch of offsets 7 to 9 cannot be read from offset 9 on: a record is longer than its batch'],
    ])
  })

  test('leaves an incomplete batch at the end to the next fetch', async () => {
    const batch = await writeBatch({ records: [small(0)] })
    const decoded = await decodeBatches(Buffer.concat([batch, batch.subarray(0, -1)]), nothing())
    expect(decoded).toHaveLength(1)
  })

  test('tells kafkajs the producer and the transaction of what cannot be read', async () => {
    const batch = await writeBatch({
      records: [{ key: null, value: Buffer.alloc(batchBytesMax) }],
      compression: 'zstd',
      isTransactional: true,
    })
    const [message] = await decodeBatches(batch, nothing())
    expect(message?.unreadable).toBeDefined()
    expect(message).toMatchObject({ batchContext: { inTransaction: true, producerId: '-1' } })
  })
})

test.each([-(2n ** 62n), -(2n ** 55n) - 1n, 2n ** 55n + 1n, 2n ** 62n])(
  'a time that is %s ms from the first of its batch is the nearest exact number',
  async timestampDelta => {
    const [record] = await logRecords({ ...small(0), timestampDelta })
    expect(record?.appendedAt).toBe(timestampDelta < 0n ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER)
  },
)

describe('headers', () => {
  test('may be named like members of every object, once or repeated', async () => {
    const once = Object.fromEntries(inherited.map(name => [name, Buffer.from(name)]))
    const twice = Object.fromEntries(inherited.map(name => [name, [Buffer.from('a'), Buffer.from(name)]]))
    for (const headers of [once, twice]) {
      const [record] = await logRecords({ ...small(0), headers })
      expect(record?.unreadable).toBeUndefined()
      const pairs = Object.entries(headers).flatMap(([name, of]) => [of].flat().map(value => [name, value]))
      expect(record?.headers).toEqual(pairs)
    }
  })

  test('may be claimed beyond 32 bits by a damaged record: its batch is a reject that the table takes', async () => {
    const claim = [0x80, 0x80, 0x80, 0x80, 0x80, 0x40]
    const content = Buffer.from([0, 0, 0, 2, 0x6b, 2, 0x76, ...claim])
    const body = Buffer.concat([Buffer.from([2 * content.length]), content])
    const messages = await decodeBatches(batchOf(body, { attributes: 0, count: 1 }), nothing())
    const records = messages.map(message => toLogRecord('pledges', 0, message))
    const unreadable = expect.stringContaining('a record claims more headers than it has bytes')
    expect(records).toMatchObject([{ offset: 109, unreadable }])
    expect(records[0]?.omittedHeaders).toBeUndefined()
  })
})

describe('bounds', () => {
  test('a record of too many bytes is unreadable, and keeps no more memory than its key; the others of its batch are read', async () => {
    const key = Buffer.from('c_1')
    const headers = { trace: Buffer.from('t') }
    const large = { key, value: Buffer.alloc(recordBytesMax), headers }
    const reason = 'the record has 16,777,236 bytes, and 16 MiB are allowed'
    for (const compression of ['none', 'gzip'] as const) {
      const batch = await writeBatch({ records: [{ ...small(0), headers }, large, small(2)], compression })
      const decoded = await decodeBatches(batch, nothing())
      expect(decoded).toMatchObject([
        { value: small(0).value },
        { key, value: null, unreadable: { reason, omittedValueBytes: recordBytesMax } },
        { value: small(2).value },
      ])
      const [first, second] = decoded
      const views = [first?.key, first?.value, first?.headers[0]?.[1], second?.key] as Buffer[]
      expect(views.map(String)).toEqual(['key 0', 'value 0', 't', 'c_1'])
      expect(views.every(view => view.buffer.byteLength < 1_024)).toBe(true)
    }
  })

  test('a batch of too many records and headers is unreadable', async () => {
    const headers = Object.fromEntries(
      Array.from({ length: 999 }, (_, number) => [`h${number}`, Buffer.alloc(0)]),
    )
    const record = { ...small(0), headers }
    const batch = await writeBatch({
      records: Array(batchPartsMax / 1_000 + 1).fill(record),
      compression: 'zstd',
    })
    const reason = 'the batch of offsets 0 to 500 (zstd) has more than 500,000 records and headers'
    expect(await decodeBatches(batch, nothing())).toMatchObject([{ offset: '500', unreadable: { reason } }])
  })
})

function nothing(): Decoded {
  return { bytes: 0, parts: 0 }
}

function small(number: number): { key: Buffer; value: Buffer } {
  return { key: Buffer.from(`key ${number}`), value: Buffer.from(`value ${number}`) }
}

async function logRecords(...written: BatchRecord[]) {
  const messages = await decodeBatches(await writeBatch({ records: written }), nothing())
  return messages.map(message => toLogRecord('pledges', 0, message))
}

/** A batch of the offsets 100 to 109 with this body. */
function batchOf(body: Buffer, { attributes, count }: { attributes: number; count: number }): Buffer {
  const head = Buffer.alloc(headBytes)
  head.writeBigInt64BE(100n, 0)
  head.writeInt32BE(headBytes - 12 + body.length, 8)
  head.writeInt8(2, 16)
  head.writeInt16BE(attributes, 21)
  head.writeInt32BE(9, 23)
  head.writeInt32BE(count, 57)
  return Buffer.concat([head, body])
}

/** Increasing offsets that end with the last one, at most one unreadable part, and records that can be made of all. */
function expectWhole(messages: readonly FetchedMessage[], first: number, last: number): void {
  const offsets = messages.map(({ offset }) => Number(offset))
  expect(offsets.at(-1)).toBe(last)
  expect(
    offsets.every((offset, at) => offset >= first && (at === 0 || offset > (offsets[at - 1] ?? 0))),
  ).toBe(true)
  for (const message of messages) {
    expect(toLogRecord('pledges', 0, message)).toMatchObject({ topic: 'pledges', partition: 0 })
  }
}
