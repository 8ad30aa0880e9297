/** `pledgeview rejects list`: shows rejects one by one, or by reason. */

import { grouped } from '../../runtime/progress.ts'
import { placeName } from '../../tables/rejects.ts'
import {
  countReasons,
  countRejects,
  latestRejects,
  type ReasonCount,
  type RejectFilter,
} from '../../tables/stored-rejects.ts'
import { type Io, printJson } from '../command.ts'
import { printable } from '../printable.ts'
import { entityText, isoTime, jsonOfReject } from './shown.ts'
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
  const total = await countRejects(source)
  const matched = await countRejects(source, filter)
  const rejects = await latestRejects(source, filter, limit)
  if (json) return printJson(io, { total, matched, rejects: rejects.map(jsonOfReject) })
  io.stdout.write(`${grouped(total)} rejects in all${ofThem(matched, rejects.length, total)}\n`)
  for (const { record, reason, rejectedAt } of rejects) {
    const line = [isoTime(rejectedAt), placeName(record), entityText(record), printable(reason)]
    io.stdout.write(`${line.join('  ')}\n`)
  }
}

async function listReasons(
  source: RejectSource,
  { filter, limit, json }: ListOptions,
  io: Io,
): Promise<void> {
  const { matched, reasons, counts } = await countReasons(source, filter, limit)
  if (json) return printJson(io, { matched, reasons, by_reason: jsonOfReasons(counts) })
  io.stdout.write(`${grouped(matched)} rejects, ${grouped(reasons)} reasons\n`)
  printReasons(counts, io)
}

function ofThem(matched: number, shown: number, total: number): string {
  if (matched === total) return shown < matched ? `, the latest ${grouped(shown)}` : ''
  return `, ${grouped(matched)} as asked for${shown < matched ? `, the latest ${grouped(shown)}` : ''}`
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
