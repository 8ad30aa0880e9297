/**
 * The query parameters of lists: `GET /projects` and `GET /removals`. Parsing is strict: an invalid value is refused by name, never guessed.
 *
 * This module parses the text of the query itself. A general parser would hide a repeated name or a broken
 * percent-encoding, and would decode unknown parameters, which may contain credentials.
 */
import { type PublicStatus, publicStatuses } from '../events/event.ts'

export const sorts = ['newest', 'ending_soon', 'most_funded', 'most_backed'] as const
export type Sort = (typeof sorts)[number]

export const limitMax = 100
export const limitDefault = 50

/** The parameters of one list request, with defaults filled in. */
export interface ListParameters {
  limit: number
  offset: number
  /** Null: every public status. */
  status: PublicStatus | null
  /** Null: every category. */
  category: string | null
  sort: Sort
  /** Unix milliseconds, inclusive. Null: no limit. */
  updatedSince: number | null
}

/** The malformed parameter and the rule that it breaks. The rule is the rest of a sentence ("must be ..."). */
export interface ParameterFault {
  parameter: string
  rule: string
}

export type Parsed = { parameters: ListParameters } | { fault: ParameterFault }

export const listDefaults: Readonly<ListParameters> = {
  limit: limitDefault,
  offset: 0,
  status: null,
  category: null,
  sort: 'newest',
  updatedSince: null,
}

const timestampRule =
  'must be an ISO 8601 timestamp with a time zone (for example 2026-01-31T12:00:00.000Z) or a date, from 1900 to 2299'

/** The rule of each parameter. It is also the message of its fault. */
export const rules = {
  limit: `must be a whole number from 1 to ${limitMax}`,
  offset: `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  status: `must be one of ${publicStatuses.join(', ')}`,
  category: 'must not be empty',
  sort: `must be one of ${sorts.join(', ')}`,
  updated_since: timestampRule,
  since: timestampRule,
} as const

type Name = keyof typeof rules

const listNames: readonly Name[] = ['limit', 'offset', 'status', 'category', 'sort', 'updated_since']
const removalNames: readonly Name[] = ['limit', 'offset', 'since']

/**
 * Parses the query part of a URL (the text after the `?`, still encoded). Pure. Unknown parameters are ignored. A known
 * parameter that is malformed or repeated is a fault.
 */
export function parseListQuery(query: string): Parsed {
  return parse(query, listNames)
}

/** The same for `GET /removals`. Its `since` is `updatedSince`. */
export function parseRemovalsQuery(query: string): Parsed {
  return parse(query, removalNames)
}

function parse(query: string, names: readonly Name[]): Parsed {
  if (query === '') return { parameters: listDefaults }
  const given = new Map<Name, string>()
  for (const piece of query.split('&')) {
    const equals = piece.indexOf('=')
    const name = decode(equals < 0 ? piece : piece.slice(0, equals))
    if (name === undefined || !isOneOf(names, name)) continue
    if (given.has(name)) return { fault: { parameter: name, rule: 'must be given only once' } }
    const value = equals < 0 ? '' : decode(piece.slice(equals + 1))
    if (value === undefined) return { fault: { parameter: name, rule: 'must be percent-encoded UTF-8' } }
    given.set(name, value)
  }
  const parameters: ListParameters = { ...listDefaults }
  for (const [name, value] of given) {
    if (!readInto(parameters, name, value)) return { fault: { parameter: name, rule: rules[name] } }
  }
  return { parameters }
}

/** The query text that parses to these parameters. Defaults are left out. `since`: the name of `updatedSince`. */
export function formatListQuery(
  parameters: ListParameters,
  since: 'updated_since' | 'since' = 'updated_since',
): string {
  const query = new URLSearchParams()
  if (parameters.limit !== limitDefault) query.set('limit', String(parameters.limit))
  if (parameters.offset !== 0) query.set('offset', String(parameters.offset))
  if (parameters.status !== null) query.set('status', parameters.status)
  if (parameters.category !== null) query.set('category', parameters.category)
  if (parameters.sort !== 'newest') query.set('sort', parameters.sort)
  if (parameters.updatedSince !== null) {
    query.set(since, new Date(parameters.updatedSince).toISOString())
  }
  return query.toString()
}

// Parses one value into the parameters. Returns whether it is well-formed.
function readInto(parameters: ListParameters, name: Name, value: string): boolean {
  switch (name) {
    case 'limit':
      return assign(parameters, 'limit', readWhole(value, 1, limitMax))
    case 'offset':
      return assign(parameters, 'offset', readWhole(value, 0, Number.MAX_SAFE_INTEGER))
    case 'status':
      return assign(
        parameters,
        'status',
        publicStatuses.find(status => status === value),
      )
    case 'category':
      return assign(parameters, 'category', value === '' ? undefined : value)
    case 'sort':
      return assign(
        parameters,
        'sort',
        sorts.find(sort => sort === value),
      )
    case 'updated_since':
    case 'since':
      return assign(parameters, 'updatedSince', readTimestamp(value))
    default:
      return name satisfies never
  }
}

function assign<K extends keyof ListParameters>(
  parameters: ListParameters,
  name: K,
  value: ListParameters[K] | undefined,
): boolean {
  if (value === undefined) return false
  parameters[name] = value
  return true
}

function isOneOf(names: readonly Name[], text: string): text is Name {
  return (names as readonly string[]).includes(text)
}

// Form encoding: a plus is a space. Undefined if the percent-encoding is broken.
function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

// Only decimal digits: no sign, fraction, exponent or leading zero.
function readWhole(text: string, min: number, max: number): number | undefined {
  if (!/^(?:0|[1-9]\d{0,15})$/.test(text)) return undefined
  const value = Number(text)
  return value >= min && value <= max ? value : undefined
}

const timestampPattern =
  /^(\d{4}-\d\d-\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?:(Z)|([+\- ])(\d\d)(?::?(\d\d))?))?$/

// The range of ClickHouse's DateTime64(3).
const timestampMin = Date.UTC(1900, 0, 1)
const timestampMax = Date.UTC(2299, 11, 31, 23, 59, 59, 999)

/**
 * Parses an ISO 8601 timestamp to Unix milliseconds, or returns `undefined` if it is none. A date alone means midnight
 * UTC. A time needs a time zone, because without one it would mean something else on every machine. Digits below the
 * millisecond are cut off: with an inclusive bound this can only add rows. The sign of `+00:00` may be a space, because
 * a plus that was not percent-encoded arrives as a space.
 */
export function readTimestamp(text: string): number | undefined {
  const match = timestampPattern.exec(text)
  if (!match) return undefined
  const [, date = '', hour = '00', minute = '00', second = '00', fraction = '', , sign, zoneHour = '00'] =
    match
  const zoneMinute = match[9] ?? '00'
  if (hour > '23' || minute > '59' || second > '59' || zoneHour > '23' || zoneMinute > '59') return undefined
  const midnight = Date.parse(`${date}T00:00:00.000Z`)
  // Date.parse turns a day that the month does not have into a day of the next month.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date)) return undefined
  const local =
    midnight +
    Number(hour) * 3_600_000 +
    Number(minute) * 60_000 +
    Number(second) * 1000 +
    Number(fraction.padEnd(3, '0').slice(0, 3))
  const zone = (Number(zoneHour) * 60 + Number(zoneMinute)) * 60_000
  const instant = sign === '-' ? local + zone : local - zone
  return instant >= timestampMin && instant <= timestampMax ? instant : undefined
}
