import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../../services/commands/command.ts'
import { readFilter, readPlace, readTime } from '../../../../services/commands/rejects/arguments.ts'

const now = Date.UTC(2026, 10, 2, 12)
const hour = 3_600_000

describe('a time of the rejects commands', () => {
  test.each([
    ['2h', now - 2 * hour],
    ['90s', now - 90_000],
    ['15m', now - 900_000],
    ['1w', now - 7 * 24 * hour],
    ['0s', now],
    ['2026-11-01', Date.UTC(2026, 10, 1)],
    ['2026-11-01T08:30', Date.UTC(2026, 10, 1, 8, 30)],
    ['2026-11-01T08:30:15.250', Date.UTC(2026, 10, 1, 8, 30, 15, 250)],
    ['2026-11-01T08:30:00Z', Date.UTC(2026, 10, 1, 8, 30)],
    ['2026-11-01T08:30:00+02:00', Date.UTC(2026, 10, 1, 6, 30)],
  ])('%s is read as it is written, in UTC if it names no zone', (text, expected) => {
    expect(readTime('since', text, now)).toBe(expected)
  })

  test.each([
    '',
    '2',
    'h',
    '-2h',
    '2 h',
    '2y',
    'yesterday',
    '2026-13-01',
    '2026-11-01 08:30',
    '1762000000000',
  ])('%j is refused, and the option is named', text => {
    expect(() => readTime('until', text, now)).toThrow(/--until takes a time like/)
  })

  test.each(['2026-02-30', '2026-02-29T09:00', '2026-04-31T10:00Z'])(
    '%s is refused, because the day does not exist',
    text => {
      expect(() => readTime('since', text, now)).toThrow(`--since names a day that does not exist: "${text}"`)
    },
  )
})

describe('a filter', () => {
  test('asks for nothing but what is given', () => {
    expect(readFilter({}, now)).toEqual({})
    expect(readFilter({ topic: 'pledges', reason: 'schema', since: '2h', until: '1h' }, now)).toEqual({
      topic: 'pledges',
      reasonPart: 'schema',
      since: now - 2 * hour,
      until: now - hour,
    })
  })

  test('of no time at all is refused', () => {
    expect(() => readFilter({ since: '1h', until: '2h' }, now)).toThrow('--since has to be before --until')
  })

  test('of an unknown topic is refused', () => {
    expect(() => readFilter({ topic: 'rejects' }, now)).toThrow(UsageError)
  })
})

describe('a place', () => {
  test('is topic, partition and offset', () => {
    expect(readPlace('api-keys/3/17')).toEqual({ topic: 'api-keys', partition: 3, offset: 17 })
  })

  test.each(['', 'pledges', 'pledges/1', 'pledges/1/x', 'pledges/1/2/3', 'orders/0/1', 'pledges/-1/2'])(
    '%j is none',
    text => {
      expect(() => readPlace(text)).toThrow(UsageError)
    },
  )
})
