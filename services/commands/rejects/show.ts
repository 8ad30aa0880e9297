/** How rejects are shown, and `pledgeview rejects show`: everything that is stored of one, for the person who repairs it. */
import { isUtf8 } from 'node:buffer'
import { schemaIdOf } from '../../../contracts/events/codec.ts'
import { type ChangeEvent, eventTypeOf, type Topic } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { type Fault, faultOf } from '../../../contracts/events/rules.ts'
import type { LogRecord } from '../../log/port.ts'
import { createEventReader } from '../../projector/ingest/decode.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { grouped } from '../../runtime/progress.ts'
import { placeName, type RejectPlace } from '../../tables/rejects.ts'
import { latestRejects, type StoredReject } from '../../tables/stored-rejects.ts'
import { type Io, printJson, printLines } from '../command.ts'
import { printable, printableLines } from '../printable.ts'
import type { RejectSource } from './source.ts'

/** Prints the reject. Throws if no reject of that place is stored. */
export async function showReject(
  source: RejectSource,
  place: RejectPlace,
  json: boolean,
  io: Io,
): Promise<number> {
  const [reject] = await latestRejects(source, { places: [place] }, 1)
  if (!reject) throw new Error(`${placeName(place)} is not a stored reject`)
  const shown = shownJson(reject, await readAgain(reject, source))
  if (json) {
    printJson(io, shown)
    return 0
  }
  const { record, reason, rejectedAt, settledAt, sizes } = reject
  printLines(io, 10, [
    ['record', `${record.topic}, partition ${record.partition}, offset ${record.offset}`],
    ['entity', entityText(record)],
    ['appended', isoTime(record.appendedAt)],
    ['rejected', isoTime(rejectedAt)],
    ...(settledAt ? [['settled', isoTime(settledAt)]] : []),
    ['reason', reason],
    ['now', shown.reason_now ?? 'an event: a retry appends it'],
    ...(shown.field === null ? [] : [['field', shown.field]]),
    ...(record.headers ?? []).map(([name, value]) => ['header', `${name}: ${shownBytes(value)}`]),
    ['key', shownBytes(record.key)],
    [
      'value',
      `${grouped(sizes.value)} bytes, schema id ${shown.schema_id ?? 'none'}: ${shownBytes(record.value)}`,
    ],
  ])
  if (shown.event) io.stdout.write(`event\n${printableLines(JSON.stringify(shown.event, null, 2))}\n`)
  return 0
}

/** What this program makes of a reject's record now. A reason, or the fault of an event, says why it is none. */
type Reading = { event?: ChangeEvent; fault?: Fault | undefined; reason?: string }

async function readAgain(reject: StoredReject, { schemas }: RejectSource): Promise<Reading> {
  const cut = cutParts(reject)
  if (cut.length > 0) {
    const parts = cut.join('; ')
    return {
      reason: `the record was cut when it was stored (${parts}), so it cannot be read or retried from here`,
    }
  }
  try {
    await schemas.learn([reject.record])
  } catch (error) {
    return { reason: messageOf(error) }
  }
  const event = createEventReader(schemas.known)(reject.record)
  return 'reason' in event ? event : { event, fault: faultOf(event) }
}

function shownJson(reject: StoredReject, { event, fault, reason }: Reading) {
  const { record, sizes } = reject
  return {
    ...jsonOfReject(reject),
    appended_at: isoTime(record.appendedAt),
    headers: (record.headers ?? []).map(([name, value]) => ({ name, value_base64: base64(value) })),
    value_bytes: record.value === null && sizes.value === 0 ? null : sizes.value,
    value_omitted: (record.value?.length ?? 0) < sizes.value,
    schema_id: (record.value && schemaIdOf(record.value)) ?? null,
    is_event_now: event !== undefined && fault === undefined,
    reason_now: fault ? `${fault.field} ${fault.reason}` : (reason ?? null),
    field: fault?.field ?? null,
    event: event ? eventJson(event) : null,
  }
}

/** In the form of `events append`, as far as possible. A time that is not in the calendar stays a number. */
function eventJson(event: ChangeEvent): object {
  try {
    return JSON.parse(formatEvent(event))
  } catch {
    const text = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)
    return JSON.parse(JSON.stringify(event, text))
  }
}

// A key of `accounts` may be that of an integration, which is the account's.
const typeOf: Readonly<Record<Topic, string>> = { ...eventTypeOf, accounts: 'account', notices: 'notice' }

/** What every JSON of a reject has. */
export function jsonOfReject(reject: StoredReject) {
  const { record, reason, rejectedAt, settledAt, sizes } = reject
  const { topic, partition, offset, key, value } = record
  return {
    ...{ topic, partition, offset, type: typeOf[topic], reason, rejected_at: isoTime(rejectedAt) },
    settled_at: settledAt ? isoTime(settledAt) : null,
    ...{ key_text: textOf(key) ?? null, key_base64: base64(key), value_base64: base64(value) },
    // The sizes of the record, if what is kept of it is less.
    cut: isCut(reject)
      ? { key_bytes: sizes.key, value_bytes: sizes.value, header_bytes: sizes.headers }
      : null,
  }
}

/** `pledge c_1/p_1` */
export function entityText({ topic, key }: Pick<LogRecord, 'topic' | 'key'>): string {
  const text = key === null ? 'without a key' : (textOf(key) ?? shownBytes(key))
  return `${typeOf[topic]} ${printable(text.length > 200 ? `${text.slice(0, 200)}...` : text)}`
}

/** Whether something of the record is not kept. Without its value, a record looks like a deletion, and must never be taken for one. */
export function isCut(reject: StoredReject): boolean {
  return cutParts(reject).length > 0
}

/** `value: 4,194,304 of 10,800,000 bytes` */
function cutParts({ record, sizes, headerCount }: StoredReject): string[] {
  const headers = (record.headers ?? []).map(([name, one]) => Buffer.byteLength(name) + one.length)
  const parts: [name: string, kept: number, of: number][] = [
    ['key', record.key?.length ?? 0, sizes.key],
    ['value', record.value?.length ?? 0, sizes.value],
    ['headers', headers.reduce((sum, size) => sum + size, 0), sizes.headers],
  ]
  const cut = parts
    .filter(([, kept, of]) => kept < of)
    .map(([name, kept, of]) => `${name}: ${grouped(kept)} of ${grouped(of)} bytes`)
  // The sizes of headers that were left out are not known.
  const isLeftOut = headers.length < headerCount && sizes.headers === 0
  return isLeftOut ? [...cut, `headers: ${headers.length} of ${grouped(headerCount)}`] : cut
}

export function isoTime(ms: number): string {
  // Any producer can set the time of a record, so the number may be out of range.
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString()
}

function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('base64')
}

function textOf(bytes: Uint8Array | null): string | undefined {
  return bytes && isUtf8(bytes) ? Buffer.from(bytes).toString() : undefined
}

const shownBytesMax = 4_096

/** As text if it is UTF-8, otherwise in base64. --json has all of it. */
function shownBytes(bytes: Uint8Array | null): string {
  if (bytes === null) return 'none'
  const text = textOf(bytes)
  const shown = text === undefined ? `${base64(bytes)} (base64)` : JSON.stringify(text)
  return shown.length > shownBytesMax ? `${shown.slice(0, shownBytesMax)}...` : shown
}
