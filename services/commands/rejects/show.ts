/** `pledgeview rejects show`: everything that is stored of one reject, for the person who repairs it. */
import { unframe } from '../../../contracts/events/codec.ts'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { formatEvent } from '../../../contracts/events/ndjson.ts'
import { type Fault, faultOf } from '../../../contracts/events/rules.ts'
import type { LogRecord } from '../../log/port.ts'
import { createEventReader } from '../../projector/ingest/decode.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { headersOf, placeName, type RejectPlace } from '../../tables/rejects.ts'
import { latestRejects, type StoredReject } from '../../tables/stored-rejects.ts'
import { type Io, printJson } from '../command.ts'
import { printable, printableLines } from '../printable.ts'
import { base64, cutParts, entityText, isoTime, jsonOfReject, shownBytes } from './shown.ts'
import type { RejectSource, Schemas } from './source.ts'

const dumpBytesMax = 4_096
const dumpRowBytes = 16

/** Prints the reject. Throws if no reject of that place is stored. */
export async function runRejectsShow(
  source: RejectSource,
  place: RejectPlace,
  { json }: { json: boolean },
  io: Io,
): Promise<number> {
  const [reject] = await latestRejects(source, { places: [place] }, 1)
  if (!reject) throw new Error(`${placeName(place)} is not a stored reject`)
  const reading = await readAgain(reject, source.schemas)
  if (json) printJson(io, jsonOf(reject, reading))
  else printReject(reject, reading, io)
  return 0
}

/** What this program makes of a reject's record now. */
export type Reading =
  | { now: 'event'; event: ChangeEvent }
  /** It can be decoded, but it breaks a rule. */
  | { now: 'faulty'; event: ChangeEvent; fault: Fault }
  /** It cannot be decoded, or its schema could not be read. */
  | { now: 'undecoded'; reason: string }

export async function readAgain(reject: StoredReject, schemas: Schemas): Promise<Reading> {
  const { record } = reject
  const cut = cutParts(reject)
  if (cut.length > 0) {
    const reason = `the record was cut when it was stored (${cut.join('; ')}), so it cannot be read or retried from here`
    return { now: 'undecoded', reason }
  }
  try {
    await schemas.learn([record])
  } catch (error) {
    return { now: 'undecoded', reason: messageOf(error) }
  }
  const event = createEventReader(schemas.known)(record)
  if ('reason' in event) return { now: 'undecoded', reason: event.reason }
  const fault = faultOf(event)
  return fault ? { now: 'faulty', event, fault } : { now: 'event', event }
}

function jsonOf(reject: StoredReject, reading: Reading) {
  const { record, sizes } = reject
  return {
    ...jsonOfReject(reject),
    appended_at: isoTime(record.appendedAt),
    headers: headersOf(record).map(([name, value]) => ({ name, value_base64: base64(value) })),
    value_bytes: record.value === null && sizes.value === 0 ? null : sizes.value,
    value_omitted: (record.value?.length ?? 0) < sizes.value,
    schema_id: schemaIdOf(record) ?? null,
    is_event_now: reading.now === 'event',
    reason_now: reasonOf(reading) ?? null,
    field: reading.now === 'faulty' ? reading.fault.field : null,
    event: 'event' in reading ? (JSON.parse(eventText(reading.event)) as object) : null,
  }
}

function printReject(reject: StoredReject, reading: Reading, io: Io): void {
  const { record, reason, rejectedAt } = reject
  const lines: [name: string, text: string][] = [
    ['record', `${record.topic}, partition ${record.partition}, offset ${record.offset}`],
    ['entity', entityText(record)],
    ['appended', isoTime(record.appendedAt)],
    ['rejected', isoTime(rejectedAt)],
    ['reason', printable(reason)],
    ['now', printable(reasonOf(reading) ?? 'an event: a retry appends it')],
    ...(reading.now === 'faulty' ? [['field', printable(reading.fault.field)] as [string, string]] : []),
    ...headersOf(record).map(([name, value]): [string, string] => [
      'header',
      `${printable(name)}: ${shownBytes(value)}`,
    ]),
    ['key', record.key === null ? 'none' : shownBytes(record.key)],
    ['value', valueText(reject)],
  ]
  for (const [name, text] of lines) io.stdout.write(`${name.padEnd(10)}${text}\n`)
  if (record.value) io.stdout.write(hexDump(record.value))
  if ('event' in reading) {
    const event = JSON.parse(eventText(reading.event)) as object
    io.stdout.write(`event\n${printableLines(JSON.stringify(event, null, 2))}\n`)
  }
}

function reasonOf(reading: Reading): string | undefined {
  if (reading.now === 'event') return undefined
  return reading.now === 'faulty' ? `${reading.fault.field} ${reading.fault.reason}` : reading.reason
}

/** In the form of `events append`, as far as possible. A time that is not in the calendar stays a number. */
function eventText(event: ChangeEvent): string {
  try {
    return formatEvent(event)
  } catch {
    return JSON.stringify(event, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  }
}

function valueText({ record: { value }, sizes }: StoredReject): string {
  if (value === null) return sizes.value > 0 ? `${sizes.value} bytes, which are not kept` : 'none: a deletion'
  const framed = unframe(value)
  const framing =
    'reason' in framed
      ? framed.reason
      : `schema id ${framed.schemaId}, ${framed.avroBinary.length} bytes of Avro`
  const cut = value.length > dumpBytesMax ? `; the first ${dumpBytesMax} here, all with --json` : ''
  return `${sizes.value} bytes, ${framing}${cut}`
}

function schemaIdOf({ value }: LogRecord): number | undefined {
  const framed = value && unframe(value)
  return framed && 'schemaId' in framed ? framed.schemaId : undefined
}

/** Offset, bytes and ASCII, sixteen bytes per line, up to a bound. */
export function hexDump(value: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < Math.min(value.length, dumpBytesMax); at += dumpRowBytes) {
    const row = Buffer.from(value.subarray(at, Math.min(at + dumpRowBytes, dumpBytesMax)))
    const bytes = [...row].map(byte => byte.toString(16).padStart(2, '0')).join(' ')
    const ascii = row.toString('latin1').replace(/[^ -~]/g, '.')
    lines.push(`  ${at.toString(16).padStart(6, '0')}  ${bytes.padEnd(3 * dumpRowBytes)} ${ascii}\n`)
  }
  return lines.join('')
}
