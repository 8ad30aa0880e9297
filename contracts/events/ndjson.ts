/**
 * Change events as NDJSON, one per line: what `events append` reads, and the form of all examples. On Kafka, a record's value may be the
 * `data` of such a line.
 *
 *     {"type":"campaign","data":{...}}
 *     {"type":"pledge","key":"c1/p1","data":null}     a tombstone
 *
 * Timestamps are ISO 8601 with seconds and a zone, enums are strings, and nullable fields are null or left out. Integers may be
 * decimal strings; those beyond 2^53 are written so. Events that are read here also keep the rules of `rules.ts`.
 * Pure.
 */
import { isUtf8 } from 'node:buffer'
import { schemas } from './codec.ts'
import { type ChangeEvent, type EventType, eventTypes, keyOf, type StateEvent } from './event.ts'
import {
  compileForm,
  type Form,
  type FormFault,
  type Holder,
  isObject,
  nameText,
  shown,
} from './json-forms.ts'
import { type Fault, faultOf, withdraws } from './rules.ts'

const forms: Readonly<Record<EventType, Form>> = {
  campaign: compileForm(schemas.campaign),
  pledge: compileForm(schemas.pledge),
  'api-key': compileForm(schemas['api-key']),
}

// A state that withdraws is not rejected for what was erased with it (rules.ts), so also not if it is null or missing.
const kept = ['version', 'changed_at', 'status']
const withdrawnForms: Readonly<Record<EventType, Form>> = {
  campaign: compileForm(schemas.campaign, [...kept, 'campaign_id']),
  pledge: compileForm(schemas.pledge, [...kept, 'pledge_id', 'campaign_id']),
  'api-key': compileForm(schemas['api-key'], [...kept, 'key', 'account_id']),
}

/**
 * The most bytes of a line, without its end, and of a value that is JSON. What JSON unpacks to has no other bound: a byte may become a
 * hundred in memory, and a value of 16 MiB stopped every projector that read it.
 */
export const jsonBytesMax = 1024 ** 2

/** An event, or a fault: the path of a field in the line (`data.rewards[2].amount_minor`) or `line`, and a reason. */
export type ParsedLine = { event: ChangeEvent } | { fault: Fault }

/** Reads one line, without its line end. Never throws. */
export function parseEventLine(line: string | Uint8Array): ParsedLine {
  return parseJson(line, 'line', readLine)
}

/**
 * Reads a record's value that is JSON: the `data` of a line. It has the form of the schema, and may still break a rule. A fault has the
 * path of a field in the state, or `the value`. Never throws.
 */
export function parseState(
  type: EventType,
  value: Uint8Array,
): { data: StateEvent['data'] } | { fault: Fault } {
  if (value.length > jsonBytesMax)
    return faulty('the value', `has ${value.length} bytes, and JSON may have 1 MiB; Avro may have more`)
  return parseJson(value, 'the value', data => {
    const holder: Holder = { data }
    const fault = formOf(type, data).read(holder, 'data')
    if (fault) return { fault: { ...fault, field: fault.field.replace(/^data\.?/, '') } }
    return holder as { data: StateEvent['data'] }
  })
}

/** `whole` is the field of a fault that concerns the whole text. */
function parseJson<R extends object>(
  json: string | Uint8Array,
  whole: string,
  read: (parsed: unknown) => R | { fault: FormFault },
): R | { fault: Fault } {
  if (typeof json !== 'string' && !isUtf8(json)) return faulty(whole, 'is not valid UTF-8')
  const text = typeof json === 'string' ? json : toText(json)
  try {
    const parsed = read(JSON.parse(text))
    if (!('fault' in parsed)) return parsed
    // JSON.parse rounds integers beyond 2^53. Few texts have any, so only those are parsed twice.
    const exact = parsed.fault.isRounded ? read(JSON.parse(text, keepInteger)) : parsed
    return 'fault' in exact ? faulty(exact.fault.field, exact.fault.reason) : exact
  } catch (cause) {
    // The parser may name the line within the text. An event is one line, so that is removed.
    const message =
      cause instanceof SyntaxError ? cause.message.replace(/ \(line 1 column \d+\)$/, '') : undefined
    if (message !== undefined) return faulty(whole, `is not JSON: ${message}`)
    // The only other failure here is the depth of the parsed value. No event is deep.
    return faulty(whole, 'is nested too deeply')
  }
}

/**
 * Writes one event, without a line end. `parseEventLine` gives the same event back. Throws a `RangeError` on a
 * timestamp that is not in the calendar; of events that keep the rules, only a withdrawn one may have such.
 */
export function formatEvent({ type, key, data }: ChangeEvent): string {
  return JSON.stringify(data === null ? { type, key, data } : { type, data: forms[type].write(data) })
}

function readLine(line: unknown): { event: ChangeEvent } | { fault: FormFault } {
  if (!isObject(line)) return faulty('line', `is not a JSON object, but ${shown(line)}`)
  const type = eventTypes.find(known => known === line.type)
  if (type === undefined) {
    return faulty('type', line.type === undefined ? 'is missing' : notAType(line.type))
  }
  for (const name in line) {
    if (name !== 'type' && name !== 'key' && name !== 'data')
      return faulty(nameText(name), 'is not a field of an event')
  }
  const { key } = line
  if (key !== undefined && (typeof key !== 'string' || !key.isWellFormed())) {
    return faulty('key', `is not a string of Unicode text, but ${shown(key)}`)
  }
  return line.data === null ? readTombstone(type, key) : readState(type, line, key)
}

function formOf(type: EventType, data: unknown): Form {
  return isObject(data) && withdraws({ type, data } as unknown as StateEvent)
    ? withdrawnForms[type]
    : forms[type]
}

function readTombstone(
  type: EventType,
  key: string | undefined,
): { event: ChangeEvent } | { fault: FormFault } {
  if (key === undefined) return faulty('key', 'is missing, and data is null')
  const event: ChangeEvent = { type, key, data: null }
  const fault = faultOf(event)
  return fault ? { fault } : { event }
}

function readState(
  type: EventType,
  line: Holder,
  key: string | undefined,
): { event: ChangeEvent } | { fault: FormFault } {
  if (line.data === undefined) return faulty('data', 'is missing (null deletes the entity)')
  const formFault = formOf(type, line.data).read(line, 'data')
  if (formFault) return { fault: formFault }
  // The form belongs to this type, so state and type fit together.
  const state = { type, data: line.data } as StateEvent
  const event = { ...state, key: keyOf(state) } as ChangeEvent
  const fault = faultOf(event)
  if (fault) return faulty(`data.${fault.field}`, fault.reason)
  if (key !== undefined && key !== event.key) {
    return faulty('key', `is ${shown(key)}, but the entity's own is ${shown(event.key)}`)
  }
  return { event }
}

// The longest 64-bit integer has 20 characters. A longer number may stay rounded, because it is refused anyway.
function keepInteger(_key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value)
  return isRounded && source !== undefined && /^-?\d{1,20}$/.test(source) ? BigInt(source) : value
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function notAType(type: unknown): string {
  return `is not one of ${eventTypes.join(', ')}, but ${shown(type)}`
}

function faulty(field: string, reason: string): { fault: FormFault } {
  return { fault: { field, reason } }
}
