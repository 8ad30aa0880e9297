import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { parseTimestamp } from '../../../contracts/events/json-forms.ts'
import { formatEvent, parseEventLine } from '../../../contracts/events/ndjson.ts'
import { campaignEvent, pledgeEvent, sampleReward } from '../../support/events/sample-events.ts'
import { changeEvent, stateEvent } from './event-arbitraries.ts'

const dataOf = (event: ChangeEvent) => JSON.parse(formatEvent(event)).data
const pledge = dataOf(pledgeEvent({ campaign_id: 'c_1', pledge_id: 'p_1' }))
const campaign = dataOf(
  campaignEvent({
    campaign_id: 'c_1',
    rewards: [sampleReward({ reward_id: 'r_1' }), sampleReward({ reward_id: 'r_2', quantity_available: 5 })],
  }),
)

describe('an event as a line', () => {
  test('comes back the same, from text and from bytes', () => {
    fc.assert(
      fc.property(changeEvent, event => {
        const line = formatEvent(event)
        expect(line).not.toContain('\n')
        expect(parseEventLine(line)).toEqual({ event })
        expect(parseEventLine(Buffer.from(line))).toEqual({ event })
      }),
    )
  })

  test('never throws, for any line', () => {
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json({ maxDepth: 3 }),
      fc.uint8Array(),
      fc.jsonValue().map(data => JSON.stringify({ type: 'pledge', data })),
      fc.tuple(fc.constantFrom(...Object.keys(campaign)), fc.jsonValue()).map(([name, value]) => {
        return campaignLine({ [name]: value })
      }),
    )
    fc.assert(
      fc.property(anything, line => {
        const parsed = parseEventLine(line)
        if ('fault' in parsed) expect(parsed.fault.reason).not.toBe('')
      }),
      { numRuns: 1_000 },
    )
  })

  test('is read whatever its withdrawal erased: only its ids, version, time and status are needed', () => {
    const withdrawn = { campaign: 'SUSPENDED', pledge: 'CANCELLED', 'api-key': 'REVOKED' }
    const kept = /^((campaign|pledge|account)_id|key|version|changed_at|status)$/
    const erased = fc.infiniteStream(fc.constantFrom('kept', null, undefined))
    fc.assert(
      fc.property(stateEvent, erased, ({ type, data }, draws) => {
        const line = formatEvent({ type, key: '', data: { ...data, status: withdrawn[type] } } as ChangeEvent)
        const event = JSON.parse(line, function erase(this: object, name, value) {
          const isContent = name !== '' && !Array.isArray(this) && !('type' in this) && !kept.test(name)
          const draw = isContent ? draws.next().value : 'kept'
          return draw === 'kept' ? value : draw
        })
        expect(parseEventLine(JSON.stringify(event))).toMatchObject({
          event: { data: { status: withdrawn[type] } },
        })
      }),
    )
  })

  test('names a status that no schema knows, also if its content was erased', () => {
    const { backer_id: _, ...rest } = pledge
    const line = pledgeLine({ ...rest, status: 'CHARGED_BACK' }, {})
    expect(parseEventLine(line)).toMatchObject({ fault: { field: 'data.status' } })
  })

  test('may name its key, which is then the entity’s own', () => {
    const line = JSON.stringify({ type: 'pledge', key: 'c_1/p_1', data: pledge })
    expect(eventOf(parseEventLine(line)).key).toBe('c_1/p_1')
  })
})

describe('integers', () => {
  test.each([
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', 9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['"9223372036854775807"', 9223372036854775807n],
    ['"42"', 42],
    ['1e3', 1000],
    ['5.0', 5],
  ])('are exact up to 64 bits: %s', (json, version) => {
    expect(eventOf(parseEventLine(withVersion(json))).data).toHaveProperty('version', version)
  })

  test.each([
    ['1.5', 'is not a whole number, but 1.5'],
    ['"007"', 'is not a whole number, but "007"'],
    ['""', 'is not a whole number, but ""'],
    ['true', 'is not a whole number, but true'],
    ['9223372036854775808', 'is beyond 64 bits: 9223372036854775808'],
    ['"9223372036854775808"', 'is beyond 64 bits: 9223372036854775808'],
    ['1e300', 'is beyond 64 bits: 1e+300'],
    ['1e18', 'is beyond 2^53 and not written as digits: write it as a decimal string'],
    ['-9007199254740993.0', 'is beyond 2^53 and not written as digits: write it as a decimal string'],
    ['1e19', 'is beyond 64 bits: 10000000000000000000'],
    ['-1', '-1 is negative'],
  ])('are refused if they are not integers, or do not fit: %s', (json, reason) => {
    expect(parseEventLine(withVersion(json))).toEqual({ fault: { field: 'data.version', reason } })
  })

  function withVersion(json: string): string {
    return pledgeLine({ ...pledge, version: '$' }, {}).replace('"$"', json)
  }
})

describe('timestamps', () => {
  test.each([
    ['2026-03-01T10:00:00Z', Date.UTC(2026, 2, 1, 10)],
    ['2026-03-01T10:00:00.5Z', Date.UTC(2026, 2, 1, 10, 0, 0, 500)],
    ['2026-03-01T10:00:00.123+05:30', Date.UTC(2026, 2, 1, 4, 30, 0, 123)],
    ['2028-02-29T23:59:59-00:30', Date.UTC(2028, 2, 1, 0, 29, 59)],
    ['2026-03-01T10:00:00.123999Z', Date.UTC(2026, 2, 1, 10, 0, 0, 123)],
    ['1969-12-31T23:59:59.123999999+00:00', -877],
  ])('are read with their zone, to the millisecond: %s', (text, ms) => {
    expect(parseTimestamp(text)).toBe(ms)
  })

  test.each([
    '2026-03-01',
    '2026-03-01T10:00:00',
    '2026-03-01 10:00:00Z',
    '2026-03-01T10:00:00+0100',
    '2026-03-01T10:00Z',
    '2026-03-01T10:00:00.1234567890Z',
    '2026-02-29T10:00:00Z',
    '2100-02-29T10:00:00Z',
    '2026-04-31T10:00:00Z',
    '2026-13-01T10:00:00Z',
    '2026-00-01T10:00:00Z',
    '2026-01-00T10:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T10:60:00Z',
    '2026-01-01T10:00:60Z',
    '+002026-01-01T10:00:00Z',
    'yesterday',
    '',
  ])('are refused if they are ambiguous, or not in the calendar: %s', text => {
    expect(parseTimestamp(text)).toBeUndefined()
  })

  test('every moment that an event may have is read as it was written', () => {
    const range = {
      min: new Date('1900-01-01'),
      max: new Date('2299-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    }
    fc.assert(fc.property(fc.date(range), date => parseTimestamp(date.toISOString()) === date.getTime()))
  })
})

describe('a faulty line is refused with its field and a reason', () => {
  const text = 'is not a string, but'
  const faults: [line: string, field: string, reason: string | RegExp][] = [
    ['', 'line', /^is not JSON: /],
    [
      '{"type":"pledge","data":{"pledge_id":"p',
      'line',
      /^is not JSON: Unterminated string in JSON at position \d+$/,
    ],
    ['[]', 'line', 'is not a JSON object, but []'],
    ['null', 'line', 'is not a JSON object, but null'],
    ['{}', 'type', 'is missing'],
    ['{"type":"backer","data":{}}', 'type', 'is not one of campaign, pledge, api-key, but "backer"'],
    ['{"type":"pledge"}', 'data', 'is missing (null deletes the entity)'],
    ['{"type":"pledge","data":[]}', 'data', 'is not an object, but []'],
    ['{"type":"pledge","data":null}', 'key', 'is missing, and data is null'],
    ['{"type":"campaign","key":"","data":null}', 'key', 'is empty'],
    ['{"type":"campaign","key":7,"data":null}', 'key', 'is not a string of Unicode text, but 7'],
    ['{"type":"campaign","key":"c","data":null,"extra":1}', 'extra', 'is not a field of an event'],
    [pledgeLine(pledge, { key: 'c_1/p_2' }), 'key', `is "c_1/p_2", but the entity's own is "c_1/p_1"`],
    [pledgeLine({ ...pledge, version: null }, {}), 'data.version', 'is null'],
    [campaignLine({ title: 5 }), 'data.title', `${text} 5`],
    [campaignLine({ is_staff_pick: 'yes' }), 'data.is_staff_pick', 'is not true or false, but "yes"'],
    [campaignLine({ tags: 'a' }), 'data.tags', 'is not an array, but "a"'],
    [campaignLine({ tags: ['a', 5] }), 'data.tags[1]', `${text} 5`],
    [campaignLine({ creator: null }), 'data.creator', 'is null'],
    [
      campaignLine({ creator: { creator_id: '', name: '', profile_url: '' } }),
      'data.creator.creator_id',
      'is empty',
    ],
    [campaignLine({ creator: { creator_id: 'u', name: '' } }), 'data.creator.profile_url', 'is missing'],
    [
      campaignLine({ created_at: '2026-02-30T00:00:00Z' }),
      'data.created_at',
      /^is not a time with seconds and zone, .*2026-02-30/,
    ],
    [campaignLine({ created_at: 5 }), 'data.created_at', /but 5$/],
    [
      campaignLine({ created_at: '1899-12-31T23:59:59Z' }),
      'data.created_at',
      /is outside the years 1900 to 2299$/,
    ],
    [campaignLine({ rewards: [campaign.rewards[0], 7] }), 'data.rewards[1]', 'is not an object, but 7'],
    [
      campaignLine({ rewards: withReward({ amount_minor: -1 }) }),
      'data.rewards[2].amount_minor',
      '-1 is negative',
    ],
    [
      campaignLine({ ['__proto__']: 1 }).replace('{"campaign_id"', '{"__proto__":{},"campaign_id"'),
      'data.__proto__',
      'is not a field of the schema',
    ],
    [campaignLine({ title: '$' }).replace('$', '\\ud83d'), 'data.title', /^contains half a surrogate pair/],
    [campaignLine({ ['x'.repeat(9_999)]: 1 }), `data."${'x'.repeat(59)}...`, 'is not a field of the schema'],
    [
      campaignLine({ title: '$' }).replace('"$"', `${'['.repeat(200_000)}${']'.repeat(200_000)}`),
      'line',
      'is nested too deeply',
    ],
  ]

  test.each(faults.map(([line, field, reason]) => ({ line, field, reason })))(
    '$field $reason',
    ({ line, field, reason }) => {
      const parsed = parseEventLine(line)
      expect(parsed).toEqual({
        fault: { field, reason: typeof reason === 'string' ? reason : expect.stringMatching(reason) },
      })
    },
  )

  test('text that is not UTF-8 is refused, even if it is JSON otherwise', () => {
    const line = Buffer.from(campaignLine({ title: '~' }))
    line[line.indexOf('~')] = 0xff
    expect(parseEventLine(line)).toEqual({ fault: { field: 'line', reason: 'is not valid UTF-8' } })
  })

  test('a message shows no more than the beginning of a value', () => {
    const parsed = parseEventLine(campaignLine({ status: 'x'.repeat(100_000) }))
    if (!('fault' in parsed)) throw new Error('was read')
    expect(parsed.fault.reason.length).toBeLessThan(250)
  })
})

function pledgeLine(data: object, { key }: { key?: string }): string {
  return JSON.stringify({ type: 'pledge', key, data })
}

function campaignLine(changes: object): string {
  return JSON.stringify({ type: 'campaign', data: { ...campaign, ...changes } })
}

function withReward(changes: object): object[] {
  return [...campaign.rewards, { ...campaign.rewards[0], reward_id: 'r_3', ...changes }]
}

function eventOf(parsed: ReturnType<typeof parseEventLine>): ChangeEvent {
  if ('fault' in parsed) throw new Error(`${parsed.fault.field} ${parsed.fault.reason}`)
  return parsed.event
}
