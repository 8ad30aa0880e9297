/** How a reject is shown, one by one and in lists. Pure. */
import { isUtf8 } from 'node:buffer'
import { eventTypeOf, type Topic } from '../../../contracts/events/event.ts'
import type { LogRecord } from '../../log/port.ts'
import { grouped } from '../../runtime/progress.ts'
import { headersOf } from '../../tables/rejects.ts'
import type { StoredReject } from '../../tables/stored-rejects.ts'
import { printable } from '../printable.ts'

const keyShownMax = 200

// A key of `accounts` may be that of an integration, which is the account's.
const typeOf: Readonly<Record<Topic, string>> = { ...eventTypeOf, accounts: 'account', notices: 'notice' }

/** What every JSON of a reject has. */
export function jsonOfReject(reject: StoredReject) {
  const { record, reason, rejectedAt, sizes } = reject
  return {
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    type: typeOf[record.topic],
    reason,
    rejected_at: isoTime(rejectedAt),
    key_text: textOf(record.key) ?? null,
    key_base64: base64(record.key),
    value_base64: base64(record.value),
    // The sizes of the record, if what is kept of it is less.
    cut: isCut(reject)
      ? { key_bytes: sizes.key, value_bytes: sizes.value, header_bytes: sizes.headers }
      : null,
  }
}

/** `pledge c_1/p_1` */
export function entityText({ topic, key }: Pick<LogRecord, 'topic' | 'key'>): string {
  if (key === null) return `${typeOf[topic]} without a key`
  const text = textOf(key)
  const shown = text === undefined ? shownBytes(key) : printable(text)
  return `${typeOf[topic]} ${shown.length > keyShownMax ? `${shown.slice(0, keyShownMax)}...` : shown}`
}

/** Whether something of the record is not kept. Without its value, a record looks like a deletion, and must never be taken for one. */
export function isCut(reject: StoredReject): boolean {
  return cutParts(reject).length > 0
}

/** `value: 4,194,304 of 10,800,000 bytes` */
export function cutParts({ record, sizes }: StoredReject): string[] {
  const headers = headersOf(record).reduce(
    (sum, [name, one]) => sum + Buffer.byteLength(name) + one.length,
    0,
  )
  const parts: [name: string, kept: number, of: number][] = [
    ['key', record.key?.length ?? 0, sizes.key],
    ['value', record.value?.length ?? 0, sizes.value],
    ['headers', headers, sizes.headers],
  ]
  return parts
    .filter(([, kept, of]) => kept < of)
    .map(([name, kept, of]) => `${name}: ${grouped(kept)} of ${grouped(of)} bytes`)
}

export function isoTime(ms: number): string {
  // Any producer can set the time of a record, so the number may be out of range.
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString()
}

export function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('base64')
}

export function textOf(bytes: Uint8Array | null): string | undefined {
  return bytes && isUtf8(bytes) ? Buffer.from(bytes).toString() : undefined
}

/** As text if it is UTF-8, otherwise in base64. */
export function shownBytes(bytes: Uint8Array): string {
  const text = textOf(bytes)
  return text === undefined ? `${base64(bytes)} (base64)` : printable(JSON.stringify(text))
}
