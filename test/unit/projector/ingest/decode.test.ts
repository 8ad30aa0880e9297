import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { schemaIds, schemas } from '../../../../contracts/events/codec.ts'
import { type ChangeEvent, topicOf } from '../../../../contracts/events/event.ts'
import type { LogRecord } from '../../../../services/log/port.ts'
import { createDecoder } from '../../../../services/projector/ingest/decode.ts'
import {
  apiKeyEvent,
  campaignEvent,
  campaignTombstone,
  newRecordOf,
  pledgeEvent,
  sampleReward,
} from '../../../support/events/sample-events.ts'

const campaign = campaignEvent({ campaign_id: 'a' })
const pledge = pledgeEvent({ campaign_id: 'a', pledge_id: 'p' })
const apiKey = apiKeyEvent({ key: 'k', account_id: 'acc' })

function recordOf(event: Parameters<typeof newRecordOf>[0], changes: Partial<LogRecord> = {}): LogRecord {
  return { ...newRecordOf(event), partition: 0, offset: 1, appendedAt: 0, ...changes }
}

describe('decoding a record', () => {
  const decode = createDecoder()

  test('that could not be read from the log is a reject with that reason, and no tombstone', () => {
    const record = { ...recordOf(campaignTombstone('a')), unreadable: 'the batch is too large' }
    expect(decode(record)).toEqual({ reason: 'the batch is too large' })
  })

  test('that is JSON of more than 1 MiB is a reject before it is parsed: in memory it could be a hundred times as large', () => {
    const head = '{"campaign_id":"a","version":9007199254740993,"status":"LIVE","more":['
    const json = `${head}${'{},'.repeat(340_000)}{}]}`
    const ofBytes = (bytes: number) => recordOf(campaign, { value: Buffer.from(json.padEnd(bytes)) })
    expect(decode(ofBytes(1024 ** 2))).toEqual({
      reason: 'changed_at is missing, but more is there, which the schema does not have',
    })
    expect(decode(ofBytes(1024 ** 2 + 1))).toEqual({
      reason: 'the value has 1048577 bytes, and JSON may have 1 MiB; Avro may have more',
    })
    const larger = campaignEvent({ campaign_id: 'a', description: 'x'.repeat(2 * 1024 ** 2) })
    expect(decode(recordOf(larger))).toEqual(larger)
  })

  test('never throws for any bytes', () => {
    const json = fc.json().map(text => Buffer.from(`{"status":${text}`))
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), damaged(), json)
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

describe('text', () => {
  const decode = createDecoder()
  // Four bytes of text, which a test replaces.
  const mark = 'MARK'
  const campaignWith: Record<string, (text: string) => ChangeEvent> = {
    title: text => campaignEvent({ campaign_id: 'a', title: text }),
    subtitle: subtitle => campaignEvent({ campaign_id: 'a', subtitle }),
    'tags[1]': text => campaignEvent({ campaign_id: 'a', tags: ['a', text] }),
    'creator.name': name =>
      campaignEvent({
        campaign_id: 'a',
        creator: { creator_id: 'u', name, profile_url: 'https://p.example', avatar_url: null },
      }),
    'rewards[1].title': title =>
      campaignEvent({
        campaign_id: 'a',
        rewards: [sampleReward({ reward_id: 'r' }), sampleReward({ reward_id: 'q', title })],
      }),
  }

  /** The record of the event, with these bytes in its value in place of the mark. */
  function marked(event: ChangeEvent, bytes: Uint8Array): LogRecord {
    const value = Buffer.from(newRecordOf(event).value ?? [])
    value.set(bytes, value.indexOf(mark))
    return recordOf(event, { value })
  }

  test('of a key must be UTF-8, even if the state has the replacement character there', () => {
    const event = campaignEvent({ campaign_id: 'a\ufffd' })
    expect(decode(recordOf(event))).toEqual(event)
    for (const changes of [{}, { value: null }]) {
      const record = recordOf(event, { key: Buffer.from([0x61, 0xff]), ...changes })
      expect(decode(record)).toEqual({ reason: 'the key is not UTF-8' })
    }
  })

  test('passes if it is UTF-8, and is otherwise a reject that names the field, whatever its bytes are', () => {
    const utf8 = fc.constantFrom('a\ufffd', '\ufffda', '😀', 'é\u00ff').map(text => Buffer.from(text))
    const latin1 = fc
      .constantFrom('abc\xff', '\xfeabc', 'ab\xc0c', '\xed\xa0\x80a', 'a\xf0\x9f\x98')
      .map(text => Buffer.from(text, 'latin1'))
    const bytes = fc.oneof(utf8, latin1, fc.uint8Array({ minLength: 4, maxLength: 4 }))
    const anyField = fc.constantFrom(...Object.entries(campaignWith))
    fc.assert(
      fc.property(anyField, bytes, ([field, eventWith], bytes) => {
        const reason = `the value is not Avro of schema id ${schemaIds.campaign}: ${field} is not UTF-8`
        const text = Buffer.from(bytes).toString()
        const decoded = decode(marked(eventWith(mark), bytes))
        expect(decoded).toEqual(isUtf8(bytes) ? eventWith(text) : { reason })
        // A reject leaves nothing behind that would concern the next record.
        expect(decode(recordOf(campaign))).toEqual(campaign)
      }),
      { numRuns: 2_000 },
    )
  })

  test('of another schema is checked too, also what it calls bytes', () => {
    const { fields, ...schema } = schemas.pledge as { fields: { name: string }[] }
    const asBytes = fields.map(field => (field.name === 'pledge_id' ? { ...field, type: 'bytes' } : field))
    const decode = createDecoder(() => ({ schema: { ...schema, fields: asBytes } }))
    expect(decode(recordOf(pledge))).toEqual(pledge)
    expect(decode(marked(pledgeEvent({ campaign_id: 'a', pledge_id: mark }), Buffer.alloc(4, 0xff)))).toEqual(
      {
        reason: expect.stringContaining('pledge_id is not UTF-8'),
      },
    )
  })
})

describe('decoding by the schemas of a registry', () => {
  const avroBinary = newRecordOf(pledge).value?.subarray(5) ?? Buffer.alloc(0)

  test('asks for a schema once, unless a thousand others came between, and names each time one that cannot be read as ours', () => {
    const asked: number[] = []
    const decode = createDecoder(id => {
      asked.push(id)
      return { schema: { type: 'string' } }
    })
    const ids = Array.from({ length: 1_001 }, (_, n) => n)
    for (const id of [...ids, 1_000, 500, 0]) {
      const reason = expect.stringContaining(`schema id ${id} cannot be read as a pledge`)
      expect(decode(recordOf(pledge, { value: framed(id, avroBinary) }))).toEqual({ reason })
    }
    expect(asked).toEqual([...ids, 0])
  })
})

function framed(schemaId: number, avroBinary: Uint8Array): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(schemaId, 1)
  return Buffer.concat([head, avroBinary])
}

/** A valid value with some bytes changed, so that the framing and most of the rest are still right. */
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
