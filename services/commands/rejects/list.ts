/** `pledgeview rejects list`: rejects one by one, or by reason. */
import { grouped } from '../../runtime/progress.ts'
import { placeName } from '../../tables/rejects.ts'
import { countReasons, latestRejects, type RejectFilter, rejectCounts } from '../../tables/stored-rejects.ts'
import { type Io, printJson } from '../command.ts'
import { printable } from '../printable.ts'
import { entityText, isoTime, jsonOfReject } from './show.ts'
import type { RejectSource } from './source.ts'

interface ListOptions {
  filter: RejectFilter
  /** At most this many rejects, or reasons. */
  limit: number
  json: boolean
}

export async function listRejects(
  source: RejectSource,
  { filter, limit, json }: ListOptions,
  io: Io,
): Promise<number> {
  const { total, open } = await rejectCounts(source)
  const { total: matched } = await rejectCounts(source, filter)
  const rejects = await latestRejects(source, filter, limit)
  if (json) {
    printJson(io, { total, open, matched, rejects: rejects.map(jsonOfReject) })
    return 0
  }
  const asked = matched === total ? '' : `, ${grouped(matched)} as asked for`
  const latest = rejects.length < matched ? `, the latest ${grouped(rejects.length)}` : ''
  io.stdout.write(`${grouped(total)} rejects in all, ${grouped(open)} open${asked}${latest}\n`)
  for (const { record, reason, rejectedAt, settledAt } of rejects) {
    const line = [isoTime(rejectedAt), placeName(record), entityText(record), printable(reason)]
    if (settledAt) line.push(`settled ${isoTime(settledAt)}`)
    io.stdout.write(`${line.join('  ')}\n`)
  }
  return 0
}

export async function listReasons(
  source: RejectSource,
  { filter, limit, json }: ListOptions,
  io: Io,
): Promise<number> {
  const { matched, reasons, counts } = await countReasons(source, filter, limit)
  const by_reason = counts.map(one => ({ ...one, first: isoTime(one.first), last: isoTime(one.last) }))
  if (json) {
    printJson(io, { matched, reasons, by_reason })
    return 0
  }
  io.stdout.write(`${grouped(matched)} rejects, ${grouped(reasons)} reasons\n`)
  for (const { reason, count, first, last, example } of by_reason) {
    const times = `${first} to ${last}, for example ${example}`
    io.stdout.write(`${grouped(count).padStart(8)}  ${printable(reason)}\n${' '.repeat(10)}${times}\n`)
  }
  return 0
}
