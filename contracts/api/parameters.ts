/**
 * The query parameters of `GET /projects`, read strictly: what is not exactly right is refused and named, never guessed.
 *
 * The text of the query is read here rather than by a general parser, so that a name given twice or a broken
 * percent-encoding is seen, and so that parameters nobody knows (credentials among them) are never even decoded.
 */
import { type PublicStatus, publicStatuses } from '../events/event.ts'

export const sorts = ['newest', 'ending_soon', 'most_funded', 'most_backed'] as const
export type Sort = (typeof sorts)[number]

export const limitMax = 100
export const limitDefault = 50

/** The parameters of one list request, defaults filled in. */
export interface ListParameters {
  limit: number
  offset: number
  /** Null: every public status. */
  status: PublicStatus | null
  /** Null: every category. */
  category: string | null
  sort: Sort
  /** Unix milliseconds, inclusive. Null: whenever changed. */
  updatedSince: number | null
}

/** Which parameter is malformed, and the rule it breaks as the rest of a sentence ("must be ..."). */
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

/** What each parameter must be; also the message of its fault. */
export const rules = {
  limit: `must be a whole number from 1 to ${limitMax}`,
  offset: `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  status: `must be one of ${publicStatuses.join(', ')}`,
  category: 'must not be empty',
  sort: `must be one of ${sorts.join(', ')}`,
  updated_since:
    'must be an ISO 8601 timestamp with a time zone (for example 2026-01-31T12:00:00.000Z) or a date, from 1900 to 2299',
} as const

type Name = keyof typeof rules

/**
 * Reads the query part of a URL (what stands after the `?`, still encoded). Pure.
 * Unknown parameters are ignored; a known one that is malformed or given twice is a fault.
 */
export function parseListQuery(query: string): Parsed {
  if (query === '') return { parameters: listDefaults }
  const given = new Map<Name, string>()
  for (const piece of query.split('&')) {
    const equals = piece.indexOf('=')
    const name = decode(equals < 0 ? piece : piece.slice(0, equals))
    if (name === undefined || !isName(name)) continue
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

/** The query text of a list request that parses to these parameters; what is default is left out. */
export function formatListQuery(parameters: ListParameters): string {
  const query = new URLSearchParams()
  if (parameters.limit !== limitDefault) query.set('limit', String(parameters.limit))
  if (parameters.offset !== 0) query.set('offset', String(parameters.offset))
  if (parameters.status !== null) query.set('status', parameters.status)
  if (parameters.category !== null) query.set('category', parameters.category)
  if (parameters.sort !== 'newest') query.set('sort', parameters.sort)
  if (parameters.updatedSince !== null) {
    query.set('updated_since', new Date(parameters.updatedSince).toISOString())
  }
  return query.toString()
}

// Whether the value is well-formed; if so, it stands in the parameters afterwards.
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

function isName(text: string): text is Name {
  return Object.hasOwn(rules, text)
}

// Form encoding: a plus is a space. Undefined where the percent-encoding is broken.
function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

// Decimal digits and nothing else: no sign, no fraction, no exponent, no leading zero.
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
 * Reads an ISO 8601 timestamp as Unix milliseconds, or `undefined` where it is not one. A date alone is its midnight in
 * UTC. A time needs its zone: without one it would mean something else on every machine. Digits below the millisecond
 * are cut off, which with an inclusive bound can only add rows. The sign of `+00:00` may be a space: that is what a
 * plus that was not percent-encoded arrives as.
 */
export function readTimestamp(text: string): number | undefined {
  const match = timestampPattern.exec(text)
  if (!match) return undefined
  const [, date = '', hour = '00', minute = '00', second = '00', fraction = '', , sign, zoneHour = '00'] =
    match
  const zoneMinute = match[9] ?? '00'
  if (hour > '23' || minute > '59' || second > '59' || zoneHour > '23' || zoneMinute > '59') return undefined
  const midnight = Date.parse(`${date}T00:00:00.000Z`)
  // Date.parse carries a day that the month does not have over into the next one.
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
