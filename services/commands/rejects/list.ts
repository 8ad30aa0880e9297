/** `pledgeview rejects list`: shows rejects one by one or by reason, and how many were searched. */
import type { StoredReject } from '../../shared/event-log/port.ts'
import { placeName, type RejectFilter, type Searched } from '../../shared/event-log/reject-filter.ts'
import { grouped } from '../../shared/progress.ts'
import { type Io, printJson } from '../command.ts'
import { printable } from '../printable.ts'
import { createReasonTally, type ReasonCount } from './reasons.ts'
import type { RejectSource } from './source.ts'

export interface ListOptions {
  filter: RejectFilter
  /** At most this many rejects, or reasons. */
  limit: number
  byReason: boolean
  json: boolean
}

export async function runRejectsList(source: RejectSource, options: ListOptions, io: Io): Promise<number> {
  if (options.byReason) await listReasons(source, options, io)
  else await listRejects(source, options, io)
  return 0
}

async function listRejects(
  source: RejectSource,
  { filter, limit, json }: ListOptions,
  io: Io,
): Promise<void> {
  const total = await source.total()
  const found = await source.latest({ ...filter, limit })
  const { matched, rejects } = found
  if (json) {
    printJson(io, { total, matched, rejects: rejects.map(jsonOf), searched: jsonOfSearched(found) })
  } else {
    io.stdout.write(`${grouped(total)} rejects in all${ofThem(matched, rejects.length, total)}\n`)
    for (const { record, reason, rejectedAt } of rejects) {
      io.stdout.write(`${isoTime(rejectedAt)}  ${placeName(record)}  ${printable(reason)}\n`)
    }
  }
  printSearched(found, io)
}

async function listReasons(
  source: RejectSource,
  { filter, limit, json }: ListOptions,
  io: Io,
): Promise<void> {
  const tally = createReasonTally()
  let matched = 0
  const searched = await source.walk(filter, async rejects => {
    for (const reject of rejects) tally.add(reject)
    matched += rejects.length
    return true
  })
  const counts = tally.counts()
  const shown = counts.slice(0, limit)
  if (json) {
    const reasons = { reasons: counts.length, by_reason: jsonOfReasons(shown) }
    printJson(io, { matched, ...reasons, searched: jsonOfSearched(searched) })
  } else {
    io.stdout.write(`${grouped(matched)} rejects, ${grouped(counts.length)} reasons\n`)
    printReasons(shown, io)
  }
  printSearched(searched, io)
}

function ofThem(matched: number, shown: number, total: number): string {
  if (matched === total) return shown < matched ? `, the latest ${grouped(shown)}` : ''
  return `, ${grouped(matched)} as asked for${shown < matched ? `, the latest ${grouped(shown)}` : ''}`
}

function jsonOf({ record, reason, rejectedAt, omittedValueBytes }: StoredReject) {
  return {
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    reason,
    rejected_at: isoTime(rejectedAt),
    key_base64: base64(record.key),
    value_base64: base64(record.value),
    ...(omittedValueBytes !== undefined && { omitted_value_bytes: omittedValueBytes }),
  }
}

export function jsonOfReasons(counts: readonly ReasonCount[]): object[] {
  return counts.map(({ first, last, ...rest }) => ({ ...rest, first: isoTime(first), last: isoTime(last) }))
}

export function printReasons(counts: readonly ReasonCount[], io: Io): void {
  const width = Math.max(0, ...counts.map(({ count }) => grouped(count).length))
  for (const { reason, count, first, last, example } of counts) {
    io.stdout.write(`  ${grouped(count).padStart(width)}  ${printable(reason)}\n`)
    io.stdout.write(`  ${' '.repeat(width)}  ${isoTime(first)} to ${isoTime(last)}, for example ${example}\n`)
  }
}

export function jsonOfSearched({ messages, of, cutBy, unreadableCount }: Searched): object {
  return { looked_at: messages, of, cut_by: cutBy ?? null, unreadable: unreadableCount }
}

/** Prints on stderr what a search did not see. */
export function printSearched({ messages, of, cutBy, unreadable, unreadableCount }: Searched, io: Io): void {
  for (const { partition, offset, reason } of unreadable) {
    io.stderr.write(`reject topic, partition ${partition}, offset ${offset}: ${printable(reason)}\n`)
  }
  const more = unreadableCount - unreadable.length
  if (more > 0) io.stderr.write(`and ${grouped(more)} more messages that are not rejects\n`)
  if (cutBy === undefined) return
  const which = cutBy === 'messages' ? 'the latest of each partition' : 'then the time ran out'
  const looked = `looked at ${grouped(messages)} of ${grouped(of)} messages of the reject topic, ${which}`
  io.stderr.write(`${looked}. Use a later --since to search fewer\n`)
}

export function isoTime(ms: number): string {
  // Any producer can write to the reject topic and set the time, so the number may be out of range.
  const at = new Date(ms)
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString()
}

export function base64(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('base64')
}
