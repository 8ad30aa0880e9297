import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { schemaIds, schemas } from '../../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../../contracts/events/event.ts'
import type { LogRecord } from '../../../../services/log/port.ts'
import { backerHasher } from '../../../../services/projector/ingest/backer-hash.ts'
import { addDelivery, type Batch, emptyBatch } from '../../../../services/projector/ingest/batch.ts'
import { createDecoder, type Decoder } from '../../../../services/projector/ingest/decode.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../../../support/events/sample-events.ts'

const hashBacker = backerHasher('ab'.repeat(32))
const longMax = 2n ** 63n - 1n
const timestampMax = BigInt(Date.UTC(2299, 11, 31, 23, 59, 59, 999))

describe('transcoding a pledge', () => {
  test('gives the batch that decoding gives, for any fields and bytes, right or wrong', () => {
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 })
    const damaged = fc.tuple(pledgeRecord(), damage, fc.boolean()).map(([record, changes, inKey]) => {
      const bytes = Buffer.from((inKey ? record.key : record.value) ?? [])
      for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte
      return { ...record, ...(inKey ? { key: bytes } : { value: bytes }) }
    })
    const cut = fc
      .tuple(pledgeRecord(), fc.nat(120))
      .map(([record, bytes]) => ({ ...record, value: record.value?.subarray(0, bytes) ?? null }))
    const other = fc.constantFrom(
      recordOf(pledgeEvent({ campaign_id: 'Å', pledge_id: 'p1' })),
      { ...recordOf(pledgeEvent(ids)), unreadable: 'the batch is too large' },
      recordOf(campaignEvent({ campaign_id: 'c1' })),
    )
    const record = fc.oneof({ weight: 5, arbitrary: pledgeRecord() }, damaged, cut, other)
    let rows = 0
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 12 }), records => {
        rows += expectSameBatch(records)
      }),
      { numRuns: 1_500 },
    )
    // Otherwise the property would say little about rows.
    expect(rows).toBeGreaterThan(1_000)
  })

  test('happens with our own schema under any id, and with no other', () => {
    const { fields, ...schema } = schemas.pledge as { fields: { name: string }[] }
    const [reward, platformAmount, amount] = [fields.at(-1), fields.at(-2), fields.at(-3)]
    const byId: Record<number, { schema: object }> = {
      7: { schema: { ...schema, fields: fields.map(field => ({ ...field, doc: 'Another text.' })) } },
      // The same bytes fit this schema too, and mean something else.
      8: { schema: { ...schema, fields: [...fields.slice(0, -3), platformAmount, amount, reward] } },
    }
    const read = (id: number) =>
      ingest(
        [withSchemaId(recordOf(pledgeEvent(ids)), id)],
        createDecoder(known => byId[known]),
      )
    const [ours, other] = [read(7), read(8)]
    expect([ours.decoded, other.decoded]).toEqual([0, 1])
    expect([ours.batch.pledgeRows.rows, other.batch.pledgeRows.rows]).toEqual([1, 1])
    expect(contentOf(ours.batch)).not.toEqual(contentOf(other.batch))
    // The fixed ids are ids like all others if there is a registry.
    expect(read(schemaIds.pledge).batch.rejects).toHaveLength(1)
  })
})

const ids = { campaign_id: 'c1', pledge_id: 'p1' }

/** A batch of these records, and how many of them were decoded. */
function ingest(records: LogRecord[], decoder: Decoder) {
  let decoded = 0
  const counting: Decoder = Object.assign(
    (record: LogRecord) => {
      decoded++
      return decoder(record)
    },
    { isCurrentSchema: decoder.isCurrentSchema },
  )
  const batch = emptyBatch('a', hashBacker)
  addDelivery(batch, { records, positions: [], assignment: 'a' }, counting)
  return { batch, decoded }
}

/** Returns the number of rows that were transcoded. */
function expectSameBatch(records: LogRecord[]): number {
  const { batch, decoded } = ingest(records, createDecoder())
  const expected = emptyBatch('a', hashBacker)
  const decoder = createDecoder()
  addDelivery(expected, { records, positions: [], assignment: 'a' }, record => decoder(record))
  expect(contentOf(batch)).toEqual(contentOf(expected))
  return records.length - decoded
}

function contentOf({
  pledgeTranscoder: _,
  pledgeRows,
  campaignRows,
  apiKeyRows,
  accountRows,
  noticeRows,
  ...rest
}: Batch) {
  const writers = [pledgeRows, campaignRows, apiKeyRows, accountRows, noticeRows]
  return { ...rest, rows: writers.map(({ rows, bytes }) => [rows, Buffer.from(bytes()).toString('hex')]) }
}

function recordOf(event: ChangeEvent): LogRecord {
  return { ...newRecordOf(event), partition: 0, offset: 1, appendedAt: 5 }
}

function withSchemaId(record: LogRecord, schemaId: number): LogRecord {
  const value = Buffer.from(record.value ?? [])
  value.writeUInt32BE(schemaId, 1)
  return { ...record, value }
}

/** A record of a pledge, field by field in Avro: mostly ordinary, and with all that a producer may do wrong. */
function pledgeRecord(): fc.Arbitrary<LogRecord> {
  const fields = fc.record({
    pledge: text(),
    campaign: text(),
    backer: text(),
    version: long(),
    changedAt: fc.oneof({ weight: 3, arbitrary: fc.constant(varint(5_000n)) }, long()),
    status: fc.oneof(
      { weight: 9, arbitrary: fc.nat(6).map(n => [2 * n]) },
      fc.nat(255).map(byte => [byte]),
    ),
    amount: long(),
    platformAmount: long(),
    reward: fc.oneof(
      { weight: 3, arbitrary: fc.constant([0]) },
      { weight: 3, arbitrary: text().map(({ avro }) => [2, ...avro]) },
      fc.uint8Array({ maxLength: 2 }).map(bytes => [...bytes]),
    ),
    after: rarely(fc.constant([]), fc.constant([0])),
    framing: rarely(
      fc.constant([0, 0, 0, 0, schemaIds.pledge]),
      fc.constantFrom([1, 0, 0, 0, 2], [0, 0, 0, 0, 1], [0]),
    ),
    otherKey: rarely(
      fc.constant(undefined),
      fc.option(fc.constantFrom('c/p', 'c', '', 'c/p/p'), { nil: null }),
    ),
    isTombstone: rarely(fc.constant(false), fc.constant(true)),
    isMisplaced: rarely(fc.constant(false), fc.constant(true)),
    appendedAt: fc.nat(9),
  })
  return fields.map(of => {
    const { pledge, campaign, backer, otherKey } = of
    const ids_ = [...pledge.avro, ...campaign.avro, ...backer.avro]
    const state = [
      ...of.version,
      ...of.changedAt,
      ...of.status,
      ...of.amount,
      ...of.platformAmount,
      ...of.reward,
    ]
    const ownKey = Buffer.from([...campaign.bytes, 0x2f, ...pledge.bytes])
    return {
      topic: 'pledges',
      key: otherKey === undefined ? ownKey : otherKey === null ? null : Buffer.from(otherKey),
      // A view into more bytes, as the logs deliver it.
      value: of.isTombstone
        ? null
        : Uint8Array.from([7, ...of.framing, ...ids_, ...state, ...of.after, 7]).subarray(1, -1),
      partition: 0,
      offset: 1,
      appendedAt: of.appendedAt,
      ...(of.isMisplaced && { isMisplaced: true }),
    }
  })
}

function text(): fc.Arbitrary<{ bytes: number[]; avro: number[] }> {
  const ascii = fc.constantFrom('a', 'p1', 'campaign-77', 'x'.repeat(62), 'x'.repeat(63))
  const other = fc.oneof(
    fc.constantFrom('', 'a/b', '\u007f', 'é', 'x'.repeat(64), 'x'.repeat(256), 'x'.repeat(257), '\ufffd'),
    fc.string({ unit: 'grapheme', maxLength: 6 }),
  )
  const utf8 = rarely(ascii, other).map(text => [...Buffer.from(text)])
  return rarely(
    utf8,
    fc.uint8Array({ maxLength: 4 }).map(bytes => [...bytes]),
  ).chain(bytes =>
    rarely(
      fc.constant(varint(BigInt(bytes.length))),
      fc.constantFrom(longer(varint(BigInt(bytes.length))), [1], [0x7e]),
    ).map(length => ({ bytes, avro: [...length, ...bytes] })),
  )
}

function long(): fc.Arbitrary<number[]> {
  const edges = [31n, 32n, 53n, 54n, 55n, 56n, 62n, 63n].flatMap(bits => [2n ** bits - 1n, 2n ** bits])
  const ordinary = fc.oneof(
    fc.bigInt({ min: 0n, max: 2n ** 54n }),
    fc.nat(300).map(BigInt),
    fc.constantFrom(...[...edges, timestampMax, timestampMax + 1n].filter(value => value <= longMax)),
  )
  return rarely(ordinary, fc.bigInt({ min: -(2n ** 63n), max: longMax })).chain(value =>
    rarely(fc.constant(varint(value)), fc.constant(longer(varint(value)))),
  )
}

function rarely<A, B>(mostly: fc.Arbitrary<A>, rare: fc.Arbitrary<B>): fc.Arbitrary<A | B> {
  return fc.oneof({ weight: 24, arbitrary: mostly }, { weight: 1, arbitrary: rare })
}

/** Avro's form of an integer: seven bits at a time from the lowest, with the sign in the lowest bit. */
function varint(value: bigint): number[] {
  const bytes: number[] = []
  let left = value < 0n ? -2n * value - 1n : 2n * value
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) + 128)
  return [...bytes, Number(left)]
}

/** The same integer with a byte more than it needs. */
function longer(bytes: number[]): number[] {
  return [...bytes.slice(0, -1), (bytes.at(-1) ?? 0) + 128, 0]
}
