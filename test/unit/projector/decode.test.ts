import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeState, schemaIds, schemas } from '../../../contracts/events/codec.ts'
import { type StateEvent, topicOf } from '../../../contracts/events/event.ts'
import { createDecoder } from '../../../services/projector/decode.ts'
import type { LogRecord } from '../../../services/shared/event-log/port.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  pledgeTombstone,
} from '../../support/sample-events.ts'

const campaign = campaignEvent({ campaign_id: 'a' })
const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p' })
const apiKey = apiKeyEvent({ key: 'k', account_id: 'acc' })

function recordOf(event: Parameters<typeof newRecordOf>[0], changes: Partial<LogRecord> = {}): LogRecord {
  return { ...newRecordOf(event), partition: 0, offset: 1, appendedAt: 0, ...changes }
}

describe('decoding a record', () => {
  const decode = createDecoder()

  test.each([campaign, pledge, apiKey, campaignTombstone('a'), pledgeTombstone('a', 'p')])(
    'gives the event that was appended: $type $key',
    event => {
      expect(decode(recordOf(event))).toEqual(event)
    },
  )

  test('keeps versions and amounts beyond 2^53 exact', () => {
    const most = 2n ** 63n - 1n
    const event = pledgeEvent({ campaign_id: 'a', pledge_id: 'p', version: most, amount_minor: most })
    expect(decode(recordOf(event))).toMatchObject({ data: { version: most, amount_minor: most } })
  })

  test('works on a view into a larger buffer, as logs deliver them', () => {
    const { value } = newRecordOf(pledge)
    const larger = Buffer.concat([Buffer.from('before'), value ?? Buffer.alloc(0), Buffer.from('after')])
    const view = new Uint8Array(larger.buffer, larger.byteOffset + 6, value?.length)
    expect(decode(recordOf(pledge, { value: view }))).toEqual(pledge)
  })

  test.each<[string, LogRecord, string]>([
    ['no key', recordOf(pledge, { key: null }), 'no key'],
    ['an empty value', recordOf(pledge, { value: Buffer.alloc(0) }), 'too short'],
    ['another framing', recordOf(pledge, { value: Buffer.from('{"json":true}') }), 'first byte'],
    ['an unknown schema', recordOf(pledge, { value: Buffer.from([0, 0, 0, 0, 99, 1]) }), 'schema id 99'],
    ['a schema of another type', recordOf(pledge, { value: newRecordOf(campaign).value }), 'schema id 1'],
    [
      'a value cut short',
      recordOf(pledge, { value: newRecordOf(pledge).value?.subarray(0, -1) ?? null }),
      'Avro',
    ],
    ['another entity’s key', recordOf(pledge, { key: Buffer.from('a/q') }), 'key'],
    [
      'a broken rule',
      recordOf(pledgeEvent({ campaign_id: 'a', pledge_id: 'p', amount_minor: -1 })),
      'amount_minor',
    ],
    ['a tombstone of no pledge', recordOf(pledge, { key: Buffer.from('a'), value: null }), 'key'],
    [
      'a key that is not UTF-8',
      recordOf(pledge, { key: Buffer.from([97, 0x2f, 0xff]), value: null }),
      'UTF-8',
    ],
  ])('with %s is a reject that says so', (_, record, reason) => {
    expect(decode(record)).toEqual({ reason: expect.stringContaining(reason) })
  })

  test('never throws, whatever the bytes', () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), damaged())
    const topic = fc.constantFrom(...Object.values(topicOf))
    fc.assert(
      fc.property(topic, fc.option(bytes), fc.option(bytes), (name, key, value) => {
        const decoded = decode({ topic: name, key, value, partition: 0, offset: 1, appendedAt: 0 })
        expect('reason' in decoded || 'key' in decoded).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('decoding what another version of the schema wrote', () => {
  const { fields, ...pledgeSchema } = schemas.pledge as { fields: { name: string }[] }

  test('takes defaults for fields that it lacks, and leaves out those that it has more', () => {
    const older = { ...pledgeSchema, fields: fields.filter(({ name }) => name !== 'reward_id') }
    const newer = { ...pledgeSchema, fields: [...fields, { name: 'note', type: 'string', default: '' }] }
    const decode = createDecoder(id => ({ schema: id === 100 ? older : newer }))
    const avroBinary = Buffer.from(newRecordOf(pledge).value ?? []).subarray(5)
    // The last field is the reward: one byte for null, which the older schema does not write.
    expect(fields.at(-1)?.name).toBe('reward_id')
    expect(decode(recordOf(pledge, { value: framed(100, avroBinary.subarray(0, -1)) }))).toEqual(pledge)
    const withNote = Buffer.concat([avroBinary, Buffer.from([2, 0x21])])
    expect(decode(recordOf(pledge, { value: framed(101, withNote) }))).toEqual(pledge)
  })

  test('a status that this program does not know becomes UNKNOWN, which neither shows nor counts', () => {
    const widened = fields.map(field =>
      field.name === 'status'
        ? { name: 'status', type: { type: 'enum', name: 'PledgeStatus', symbols: ['NEWLY_INVENTED'] } }
        : field,
    )
    const decode = createDecoder(() => ({ schema: { ...pledgeSchema, fields: widened } }))
    const written = encodeState({
      ...(pledge as Extract<StateEvent, { type: 'pledge' }>),
      data: { ...(pledge.data as Extract<StateEvent, { type: 'pledge' }>['data']), status: 'UNKNOWN' },
    })
    expect(decode(recordOf(pledge, { value: framed(100, written.subarray(5)) }))).toMatchObject({
      data: { status: 'UNKNOWN' },
    })
  })

  test('a schema that cannot be read as ours is a reject that names it, each time', () => {
    const decode = createDecoder(() => ({ schema: { ...pledgeSchema, fields: fields.slice(1) } }))
    const record = recordOf(pledge, { value: framed(100, Buffer.from([1, 2, 3])) })
    for (let i = 0; i < 2; i++) {
      expect(decode(record)).toEqual({
        reason: expect.stringMatching(/schema id 100 cannot be read as a pledge/),
      })
    }
  })
})

describe('decoding by the schemas of a registry', () => {
  const avroBinary = newRecordOf(pledge).value?.subarray(5) ?? Buffer.alloc(0)

  test('takes no fixed id for its own schema', () => {
    expect(createDecoder(() => undefined)(recordOf(pledge))).toEqual({
      reason: 'schema id 2 is unknown for a pledge',
    })
  })

  test('passes the reason on that it is given, for as long as it is given', () => {
    let isThere = false
    const decode = createDecoder(() => (isThere ? { schema: schemas.pledge } : { reason: 'is not there' }))
    const record = recordOf(pledge, { value: framed(7, avroBinary) })
    expect(decode(record)).toEqual({ reason: 'schema id 7 is not there' })
    isThere = true
    expect(decode(record)).toEqual(pledge)
  })

  test('asks once for what a schema is, unless a thousand others came between', () => {
    const asked: number[] = []
    const decode = createDecoder(id => {
      asked.push(id)
      return { schema: { type: 'string' } }
    })
    const ids = Array.from({ length: 1_001 }, (_, n) => n)
    for (const id of [...ids, 1_000, 500, 0]) decode(recordOf(pledge, { value: framed(id, avroBinary) }))
    expect(asked).toEqual([...ids, 0])
  })
})

function framed(schemaId: number, avroBinary: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(schemaId, 1)
  return Buffer.concat([head, avroBinary])
}

/** A good value with some of its bytes changed, so that the framing and most of the rest still fit. */
function damaged(): fc.Arbitrary<Uint8Array> {
  const values = [campaign, pledge, apiKey].map(event => Buffer.from(newRecordOf(event).value ?? []))
  expect(values.map(value => value.readUInt32BE(1))).toEqual(Object.values(schemaIds))
  return fc
    .tuple(fc.constantFrom(...values), fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }))
    .map(([value, changes]) => {
      const copy = Buffer.from(value)
      for (const [at, byte] of changes) copy[5 + (at % (copy.length - 5))] = byte
      return copy
    })
}
