/**
 * The JSON form of a state, compiled from its Avro schema: strict readers that name the path of a fault, and the
 * writers for the other direction.
 *
 * The readers are strict because a typing error in a nullable field would otherwise be lost silently. Unknown fields,
 * text that is not Unicode and integers that JSON rounded are all faults. Readers change the result of JSON.parse in
 * place, because nothing else uses it. So a line costs little more than its parsing.
 */
import type { Long } from './event.ts'
import type { Fault } from './rules.ts'

export type Holder = Record<string | number, unknown>

/** A fault that a reader found. `isRounded`: the integer may be valid if it is read exactly. */
export interface FormFault extends Fault {
  isRounded?: boolean
}

/** The JSON form of the values of one Avro type. */
export interface Form {
  /** Checks `holder[at]` and replaces it with the event's form. The fault's path begins with `at`. */
  read(holder: Holder, at: string | number): FormFault | undefined
  /** The JSON form of an event's value. Throws a `RangeError` on a timestamp that is not in the calendar. */
  write(value: unknown): unknown
}

type Schema = string | SchemaObject | readonly Schema[]

interface SchemaObject {
  type: Schema
  logicalType?: string
  fields?: readonly { name: string; type: Schema; default?: unknown }[]
  items?: Schema
  symbols?: readonly string[]
}

interface FieldForm {
  name: string
  isNullable: boolean
  /** What an event has that does not have the field. */
  absent: unknown
  /** What stands for a null or a missing value before it is read, if the content may be erased. Not for a value that may be null. */
  empty?: (() => unknown) | undefined
  form: Form
}

/**
 * Compiles an Avro schema document. `kept`: every other field may be null or missing even if its type forbids it, and is then empty.
 * Throws an `Error` on a type that our events do not use.
 */
export function compileForm(schema: object, kept?: readonly string[]): Form {
  return formOf(schema as SchemaObject, kept)
}

function formOf(schema: Schema, kept?: readonly string[]): Form {
  if (typeof schema !== 'string' && !isUnion(schema)) {
    const { type, logicalType, fields, items, symbols } = schema
    if (type === 'record' && fields) return recordForm(fields.map(field => fieldForm(field, kept)))
    if (type === 'array' && items) return arrayForm(formOf(items, kept))
    if (type === 'enum' && symbols) return enumForm(symbols)
    if (type === 'long' && logicalType === 'timestamp-millis') return timestampForm
    return formOf(type, kept)
  }
  if (schema === 'string') return stringForm
  if (schema === 'boolean') return booleanForm
  if (schema === 'long') return longForm
  throw new Error(`no JSON form for the Avro type ${JSON.stringify(schema)}`)
}

function fieldForm(
  { name, type, default: absent }: { name: string; type: Schema; default?: unknown },
  kept?: readonly string[],
): FieldForm {
  if (!isUnion(type)) {
    const empty = kept && !kept.includes(name) ? () => emptyJson(type) : undefined
    return { name, isNullable: false, absent, empty, form: formOf(type, kept) }
  }
  const [first, second, ...rest] = type
  if (first !== 'null' || second === undefined || rest.length > 0) {
    throw new Error(`no JSON form for the union of ${name}`)
  }
  return { name, isNullable: true, absent: null, form: formOf(second, kept) }
}

// The fields of a record are filled when it is read.
function emptyJson(schema: Schema): unknown {
  if (typeof schema === 'string' || isUnion(schema)) {
    return { string: '', boolean: false, long: 0 }[String(schema)]
  }
  const { type, logicalType, symbols } = schema
  if (logicalType === 'timestamp-millis') return new Date(0).toISOString()
  if (type === 'record') return {}
  if (type === 'array') return []
  return symbols ? symbols[0] : emptyJson(type)
}

function isUnion(schema: Schema): schema is readonly Schema[] {
  return Array.isArray(schema)
}

function recordForm(fields: readonly FieldForm[]): Form {
  const names = new Set(fields.map(({ name }) => name))
  const unknownOf = (record: Holder) => Object.keys(record).find(name => !names.has(name))
  // If a state is in an envelope, or has other names, the unknown field helps its writer more than the missing one.
  const missing = (record: Holder) => {
    const unknown = unknownOf(record)
    // The name may be any text. It follows `but`, as values do, so a log leaves it out (rejects.ts).
    return unknown === undefined
      ? 'is missing'
      : `is missing, but ${nameText(unknown)} is there, which the schema does not have`
  }
  return {
    read(holder, at) {
      const record = holder[at]
      if (!isObject(record)) return notA('an object', record, at)
      for (const { name, isNullable, absent, empty, form } of fields) {
        if (empty) record[name] ??= empty()
        const value = record[name]
        if (value === undefined || value === null) {
          if (value === null && !isNullable) return under(at, { field: name, reason: 'is null' })
          if (absent === undefined) return under(at, { field: name, reason: missing(record) })
          record[name] = absent
        } else {
          const fault = form.read(record, name)
          if (fault) return under(at, fault)
        }
      }
      // Every field is present here, so one more is a field that we do not know.
      if (Object.keys(record).length === fields.length) return undefined
      const unknown = unknownOf(record) ?? ''
      return under(at, { field: nameText(unknown), reason: 'is not a field of the schema' })
    },
    write(value) {
      const record = value as Holder
      const json: Holder = {}
      for (const { name, absent, form } of fields) {
        const part = record[name] ?? absent
        json[name] = part === null || part === undefined ? null : form.write(part)
      }
      return json
    },
  }
}

function arrayForm(items: Form): Form {
  return {
    read(holder, at) {
      const array = holder[at]
      if (!Array.isArray(array)) return notA('an array', array, at)
      for (let index = 0; index < array.length; index++) {
        const fault = items.read(array as unknown as Holder, index)
        if (fault) return under(at, fault)
      }
      return undefined
    },
    write: value => (value as unknown[]).map(item => items.write(item)),
  }
}

function enumForm(symbols: readonly string[]): Form {
  const known = new Set<unknown>(symbols)
  return {
    read(holder, at) {
      return known.has(holder[at]) ? undefined : notA(`one of ${symbols.join(', ')}`, holder[at], at)
    },
    write: value => value,
  }
}

const stringForm: Form = {
  read(holder, at) {
    const value = holder[at]
    if (typeof value !== 'string') return notA('a string', value, at)
    if (value.isWellFormed()) return undefined
    return { field: segment(at), reason: 'contains half a surrogate pair, so it is not Unicode text' }
  },
  write: value => value,
}

const booleanForm: Form = {
  read(holder, at) {
    return typeof holder[at] === 'boolean' ? undefined : notA('true or false', holder[at], at)
  },
  write: value => value,
}

const longForm: Form = {
  read(holder, at) {
    const value = holder[at]
    if (typeof value === 'number') {
      if (Number.isSafeInteger(value)) return undefined
      if (!Number.isInteger(value)) return notA('a whole number', value, at)
      return { ...(Math.abs(value) < 2 ** 63 ? notExact(at) : beyond64Bits(value, at)), isRounded: true }
    }
    const exact = typeof value === 'string' && /^(0|-?[1-9]\d{0,18})$/.test(value) ? BigInt(value) : value
    if (typeof exact !== 'bigint') return notA('a whole number', value, at)
    if (BigInt.asIntN(64, exact) !== exact) return beyond64Bits(exact, at)
    const rounded = Number(exact)
    holder[at] = Number.isSafeInteger(rounded) ? rounded : exact
    return undefined
  },
  // As text, because most JSON readers round such a number (RFC 7493, section 2.2).
  write: value => (typeof value === 'bigint' ? String(value) : value),
}

const timestampForm: Form = {
  read(holder, at) {
    const value = holder[at]
    const timestamp = typeof value === 'string' ? parseTimestamp(value) : undefined
    if (timestamp === undefined) {
      return notA('a time with seconds and zone, as 2026-01-31T12:00:00.000Z', value, at)
    }
    holder[at] = timestamp
    return undefined
  },
  write: value => new Date(Number(value)).toISOString(),
}

const timestampPattern =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Milliseconds since the epoch of an ISO 8601 time with a zone, or `undefined` if the text is not one. Digits below the millisecond are cut off. */
export function parseTimestamp(text: string): number | undefined {
  if (!timestampPattern.test(text)) return undefined
  const day = Number(text.slice(8, 10))
  // Date.parse reads 30 February as 2 March.
  if (day > 28 && day > daysInMonth(Number(text.slice(0, 4)), Number(text.slice(5, 7)))) return undefined
  return Date.parse(text)
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Whether the value is a JSON object. An array is not. */
export function isObject(value: unknown): value is Holder {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value as a message shows it: its JSON, cut to a length. */
export function shown(value: unknown): string {
  const text = typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'nothing')
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}...` : text
}

const shownLengthMax = 60

/** A field's name as a path shows it. The name may be any text, so it is quoted unless it is plain. */
export function nameText(name: string): string {
  return /^[\w-]{1,60}$/.test(name) ? name : shown(name)
}

function notA(what: string, value: unknown, at: string | number): FormFault {
  return { field: segment(at), reason: `is not ${what}, but ${shown(value)}` }
}

function notExact(at: string | number): FormFault {
  const reason = 'is beyond 2^53 and not written as digits: write it as a decimal string'
  return { field: segment(at), reason }
}

function beyond64Bits(value: Long, at: string | number): FormFault {
  return { field: segment(at), reason: `is beyond 64 bits: ${shown(value)}` }
}

function under(at: string | number, fault: FormFault): FormFault {
  const dot = fault.field.startsWith('[') ? '' : '.'
  return { ...fault, field: `${segment(at)}${dot}${fault.field}` }
}

function segment(at: string | number): string {
  return typeof at === 'number' ? `[${at}]` : at
}
