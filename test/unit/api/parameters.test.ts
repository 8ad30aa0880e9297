import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  formatListQuery,
  type ListParameters,
  parseListQuery,
  readTimestamp,
  rules,
  sorts,
} from '../../../contracts/api/parameters.ts'
import { publicStatuses } from '../../../contracts/events/event.ts'

function parametersOf(query: string): ListParameters {
  const parsed = parseListQuery(query)
  if ('fault' in parsed) throw new Error(`${parsed.fault.parameter} ${parsed.fault.rule}`)
  return parsed.parameters
}

function faultOf(query: string) {
  const parsed = parseListQuery(query)
  return 'fault' in parsed ? parsed.fault : undefined
}

describe('the query of a list', () => {
  it.each(['', '0', '101', '-1', '+5', ' 5', '05', '1e1', '5.0', '١'])(
    'refuses limit=%s and names it',
    limit => {
      expect(faultOf(`limit=${limit}`)).toEqual({ parameter: 'limit', rule: rules.limit })
    },
  )

  it.each(['', '-1', '-0', '9007199254740992', '99999999999999999999', '1e3', '00'])(
    'refuses offset=%s and names it',
    offset => {
      expect(faultOf(`offset=${offset}`)).toEqual({ parameter: 'offset', rule: rules.offset })
    },
  )

  it('survives formatting and parsing', () => {
    const any = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })
    const text = fc.string({ unit: fc.oneof(any, fc.constantFrom(...' +&=%')), minLength: 1 })
    const parameters = fc.record<ListParameters>({
      limit: fc.integer({ min: 1, max: 100 }),
      offset: fc.maxSafeNat(),
      status: fc.option(fc.constantFrom(...publicStatuses)),
      category: fc.option(text),
      sort: fc.constantFrom(...sorts),
      updatedSince: fc.option(fc.integer({ min: Date.UTC(1900, 0), max: Date.UTC(2299, 11, 31) })),
    })
    fc.assert(
      fc.property(parameters, given => {
        expect(parametersOf(formatListQuery(given))).toEqual(given)
      }),
    )
  })

  it('never throws, and never accepts what the rules forbid', () => {
    const names = fc.constantFrom('limit', 'offset', 'status', 'sort', 'updated_since', 'category', 'x')
    const pieces = fc.array(
      fc.tuple(names, fc.string({ unit: 'binary-ascii' })).map(([name, value]) => `${name}=${value}`),
    )
    fc.assert(
      fc.property(pieces, given => {
        const parsed = parseListQuery(given.join('&'))
        if ('fault' in parsed) return
        const { limit, offset } = parsed.parameters
        expect(Number.isInteger(limit) && limit >= 1 && limit <= 100).toBe(true)
        expect(Number.isSafeInteger(offset) && offset >= 0).toBe(true)
      }),
    )
  })
})

describe('updated_since', () => {
  it.each([
    ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.678Z'],
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000Z'],
    ['2026-01-02T03:04Z', '2026-01-02T03:04:00.000Z'],
    ['2026-01-02T03:04:05.6Z', '2026-01-02T03:04:05.600Z'],
    ['2026-01-02T03:04:05,678Z', '2026-01-02T03:04:05.678Z'],
    ['2026-01-02T03:04:05.678999Z', '2026-01-02T03:04:05.678Z'],
    ['2026-01-02T03:04:05+02:00', '2026-01-02T01:04:05.000Z'],
    // A plus that was not percent-encoded arrives as a space.
    ['2026-01-02T03:04:05 02:00', '2026-01-02T01:04:05.000Z'],
    ['2026-01-02T03:04:05-05:30', '2026-01-02T08:34:05.000Z'],
    ['2026-01-02T03:04:05+0200', '2026-01-02T01:04:05.000Z'],
    ['2026-01-02T03:04:05+02', '2026-01-02T01:04:05.000Z'],
    ['2026-01-02', '2026-01-02T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['1900-01-01T00:00:00.000Z', '1900-01-01T00:00:00.000Z'],
    ['2299-12-31T23:59:59.999Z', '2299-12-31T23:59:59.999Z'],
  ])('reads %s', (text, instant) => {
    const time = readTimestamp(text)
    expect(time).toBeTypeOf('number')
    expect(new Date(time ?? 0).toISOString()).toBe(instant)
  })

  it.each([
    '',
    '1767225600000',
    '2026-01-02T03:04:05',
    '2026-01-02 03:04:05Z',
    '2026-01-02t03:04:05z',
    '2026-13-01',
    '2026-02-30',
    '2026-01-02T24:00:00Z',
    '2026-01-02T23:60:00Z',
    '2026-01-02T23:59:60Z',
    '2026-01-02T03:04:05+24:00',
    '2026-01-02T03:04:05+02:60',
    '2026-01-02T03:04:05.Z',
    '20260102T030405Z',
    '0000-01-01T00:00:00Z',
    '1899-12-31T23:59:59.999Z',
    '2300-01-01',
    '2299-12-31T23:59:59.999-00:01',
    '2026-01-02T03:04:05Z\n',
    ' 2026-01-02',
  ])('refuses %j', text => {
    expect(readTimestamp(text)).toBeUndefined()
    expect(faultOf(`updated_since=${encodeURIComponent(text)}`)?.parameter).toBe('updated_since')
  })
})
