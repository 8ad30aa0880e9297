import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { earlierSchemas, encodeState, schemaIds } from '../../../contracts/events/codec.ts'
import { type ChangeEvent, eventTypes, type StateEvent } from '../../../contracts/events/event.ts'
import { type GoldenExample, withPresentSchema } from '../../../contracts/events/golden/examples.ts'
import { formatEvent, parseEventLine } from '../../../contracts/events/ndjson.ts'
import type { Header, LogRecord } from '../../../services/log/port.ts'
import { createDecoder } from '../../../services/projector/ingest/decode.ts'

interface GoldenJson {
  name: string
  topic: LogRecord['topic']
  key: string
  headers: Readonly<Record<string, string>>
  value: string
  line: string
}

interface GoldenReject {
  name: string
  topic: LogRecord['topic']
  key: string | null
  value_hex: string | null
  reason: string
}

const decode = createDecoder()

describe.each(eventTypes)('the golden examples of type %s', type => {
  const examples = readGolden<GoldenExample[]>(type)
  const current = examples.filter(
    ({ value_hex }) => value_hex === null || idOf(value_hex) === schemaIds[type],
  )

  test.each(examples)('a producer that publishes these bytes is understood: $name', example => {
    expect(decode(recordOf(example))).toEqual(eventOf(example))
  })

  test.each(current)('its NDJSON line becomes exactly these bytes: $name', example => {
    const event = eventOf(example)
    expect(event.type).toBe(type)
    expect(event.key).toBe(example.key)
    const hex = event.data === null ? null : encodeState(event as StateEvent).toString('hex')
    expect(hex).toBe(example.value_hex)
  })

  test.each(current)('its NDJSON line is written exactly so: $name', example => {
    expect(formatEvent(eventOf(example))).toBe(example.line)
  })
})

test('every fixed id has an example, and stands for one schema', () => {
  const fixed = [...Object.values(schemaIds), ...earlierSchemas.map(({ id }) => id)]
  const shown = eventTypes.flatMap(type =>
    readGolden<GoldenExample[]>(type).map(({ value_hex }) => idOf(value_hex ?? '')),
  )
  expect(new Set(shown.filter(id => !Number.isNaN(id)))).toEqual(new Set(fixed))
  expect(new Set(fixed).size).toBe(fixed.length)
})

test('the first example of a new id is the first one of before, and those of before stay', () => {
  const before = readGolden<GoldenExample[]>('api-key').filter(
    ({ value_hex }) => value_hex !== null && idOf(value_hex) !== schemaIds['api-key'],
  )
  const [first, ...rest] = withPresentSchema('api-key', before).toReversed()
  expect(rest.toReversed()).toEqual(before)
  expect(idOf(first?.value_hex ?? '')).toBe(schemaIds['api-key'])
  expect(decode(recordOf(first as GoldenExample))).toEqual(eventOf(before[0] as GoldenExample))
})

describe('a value that is JSON', () => {
  const shown = readGolden<GoldenJson[]>('json')
  const ofTypes = eventTypes.flatMap(type => readGolden<GoldenExample[]>(type))
  const states = ofTypes.filter(({ value_hex }) => value_hex !== null)
  const data = states.map(one => ({ ...one, headers: {}, value: JSON.stringify(JSON.parse(one.line).data) }))

  test.each([...shown, ...data])('is the event of its NDJSON line, whatever its headers say: $name', one => {
    const headers = Object.entries(one.headers).map(([name, of]): Header => [name, Buffer.from(of)])
    const record = { ...recordOf({ ...one, value_hex: Buffer.from(one.value).toString('hex') }), headers }
    expect(decode(record)).toEqual(eventOf(one))
  })
})

describe('the golden rejects', () => {
  test.each(readGolden<GoldenReject[]>('rejects'))('are refused with a reason that helps: $name', reject => {
    expect(decode(recordOf(reject))).toEqual({ reason: reject.reason })
  })
})

/** The schema id in the framing. */
function idOf(hex: string): number {
  return Number.parseInt(hex.slice(2, 10), 16)
}

function readGolden<T>(name: string): T {
  const url = new URL(`../../../contracts/events/golden/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(url, 'utf8')) as T
}

function eventOf({ line }: Pick<GoldenExample, 'line'>): ChangeEvent {
  const parsed = parseEventLine(line)
  if ('fault' in parsed) throw new Error(`${parsed.fault.field} ${parsed.fault.reason}`)
  return parsed.event
}

function recordOf({ topic, key, value_hex }: Pick<GoldenReject, 'topic' | 'key' | 'value_hex'>): LogRecord {
  return {
    topic,
    partition: 0,
    offset: 1,
    appendedAt: 0,
    key: key === null ? null : Buffer.from(key),
    value: value_hex === null ? null : Buffer.from(value_hex, 'hex'),
  }
}
