/**
 * `pledgeview rejects retry`: appends a rejected record to its topic again if it is a valid event now, with its original bytes.
 *
 * Then it settles what has come into the ledger: a reject whose event, or a newer one, the ledger has. Until then a reject stays open.
 * Appending a record twice changes nothing. So a retry that was killed, or whose records were rejected again, is simply repeated. A
 * record that is still not a valid event is not appended, because it would only be rejected again.
 */
import type { NewRecord } from '../../log/port.ts'
import { schemaMissing } from '../../log/registry/schema-registry.ts'
import { createDecoder } from '../../projector/ingest/decode.ts'
import { versionOf } from '../../projector/ingest/ledger-rows.ts'
import { grouped } from '../../runtime/progress.ts'
import { entityOf } from '../../tables/ledger-versions.ts'
import { placeName, reasonKind, settleRejects } from '../../tables/rejects.ts'
import { type RejectFilter, type StoredReject, walkRejects } from '../../tables/stored-rejects.ts'
import { type Io, printJson } from '../command.ts'
import { printable } from '../printable.ts'
import { isCut } from './show.ts'
import type { RejectSource, RetryTarget } from './source.ts'

export interface RetryOutcome {
  matched: number
  /** Appended. In a dry run: what would be appended. */
  retried: number
  /** Events of which the log already has this version or a newer one. */
  outdated: number
  /** Records that are still no events. */
  no_event: number
  by_reason: { reason: string; count: number; example: string }[]
  /** Records that were cut when they were stored, and the places of the first of them. */
  omitted: number
  omitted_places: string[]
}

const shownMax = 100

/** Runs the command. Exit code 0; 1 if something was requested and nothing of it is settled. */
export async function retryRejects(
  source: RejectSource,
  { wanted, isDry, json }: { wanted: RejectFilter; isDry: boolean; json: boolean },
  io: Io,
): Promise<number> {
  const missing = new Set(wanted.places?.map(placeName))
  // After the rejects that this retry has found, by the clocks of the projectors, which wrote their times.
  let since = 0
  const target = isDry ? undefined : await source.openTarget()
  const { take, outcome } = createRetry(source, target)
  let settlement: Settlement = { settled: 0, not_settled: 0 }
  for await (const rejects of walkRejects(source, wanted)) {
    await take(rejects)
    for (const { record, rejectedAt } of rejects) {
      missing.delete(placeName(record))
      since = Math.max(since, rejectedAt + 1)
    }
  }
  if (outcome.retried > 0) await target?.untilProjected()
  if (target && outcome.retried + outcome.outdated > 0) settlement = await settle(source, wanted, since)
  if (json) printJson(io, { dry_run: isDry, ...outcome, ...settlement, missing_places: [...missing] })
  else printOutcome({ ...outcome, ...settlement }, [...missing], isDry, io)
  const asked = outcome.matched + missing.size
  const done = isDry ? outcome.retried + outcome.outdated : settlement.settled
  return asked === 0 || done > 0 ? 0 : 1
}

/** Takes rejects part by part, appends what is an event now, and counts the outcomes. Without a target nothing is appended. */
export function createRetry(
  { schemas, versions }: Pick<RejectSource, 'schemas' | 'versions'>,
  target: Pick<RetryTarget, 'append'> | undefined,
) {
  const decode = createDecoder(schemas.known)
  // What this retry has appended. The parts are not in the order of versions.
  const appended = new Map<string, bigint>()
  const outcome: RetryOutcome = {
    ...{ matched: 0, retried: 0, outdated: 0, no_event: 0, by_reason: [], omitted: 0, omitted_places: [] },
  }

  function isWhole(reject: StoredReject): boolean {
    if (!isCut(reject)) return true
    outcome.omitted++
    if (outcome.omitted_places.length < shownMax) outcome.omitted_places.push(placeName(reject.record))
    return false
  }

  function countNoEvent({ record }: StoredReject, text: string): void {
    outcome.no_event++
    const reason = reasonKind(text)
    const known = outcome.by_reason.find(one => one.reason === reason)
    if (known) known.count++
    else if (outcome.by_reason.length < shownMax)
      outcome.by_reason.push({ reason, count: 1, example: placeName(record) })
  }

  async function eventsOf(rejects: readonly StoredReject[]) {
    const whole = rejects.filter(isWhole)
    await schemas.learn(whole.map(({ record }) => record))
    return whole.flatMap(reject => {
      const { topic, key, value, headers } = reject.record
      const event = decode(reject.record)
      if ('key' in event) return { event, record: { topic, key, value, ...(headers && { headers }) } }
      const own = "is the portal's own, which has told its writer that it was not taken"
      countNoEvent(reject, 'reason' in event ? event.reason : own)
      return []
    })
  }

  async function take(rejects: readonly StoredReject[]): Promise<void> {
    outcome.matched += rejects.length
    const ready = await eventsOf(rejects)
    const present = await versions(ready.map(({ event }) => event))
    // A projector that was told that a schema is missing would reject its records for a moment more.
    if (target && rejects.some(({ reason }) => reason.includes(schemaMissing)))
      await schemas.untilAskedAgain()
    // The newest version of an entity comes first here, so the older ones count as outdated.
    const inTurn = ready.toSorted((a, b) => (versionOf(a.event) < versionOf(b.event) ? 1 : -1))
    const records: NewRecord[] = []
    for (const { event, record } of inTurn) {
      const entity = entityOf(event)
      const known = [present, appended].map(one => one.get(entity) ?? -1n)
      if (known.some(version => version >= versionOf(event))) {
        outcome.outdated++
        continue
      }
      appended.set(entity, versionOf(event))
      records.push(record)
    }
    await target?.append(records)
    outcome.retried += records.length
  }

  return { take, outcome }
}

function printOutcome(
  outcome: RetryOutcome & Settlement,
  missing: readonly string[],
  isDry: boolean,
  io: Io,
): void {
  const { matched, retried, outdated, no_event, by_reason, omitted, omitted_places } = outcome
  const say = (count: number, text: string) => {
    if (count > 0) io.stdout.write(`${grouped(count)} ${text}\n`)
  }
  io.stdout.write(`${grouped(retried)} ${isDry ? 'would be' : 'were'} appended, of ${grouped(matched)}\n`)
  say(outdated, 'are in the ledger or in the log already, as they are or newer')
  say(outcome.settled, 'are settled: the ledger has them')
  say(
    outcome.not_settled,
    'stay open: pledgeview rejects list --by-reason --since 5m says why, or they are not projected yet',
  )
  say(no_event, 'are still not valid events:')
  for (const { reason, count, example } of by_reason)
    io.stdout.write(`${grouped(count).padStart(8)}  ${printable(reason)}, for example ${example}\n`)
  const cut = 'are larger than what is kept of a reject, so have their producer append them again'
  say(omitted, `${cut}: ${omitted_places.join(', ')}`)
  say(missing.length, `are not stored rejects: ${missing.join(', ')}`)
}

interface Settlement {
  settled: number
  /** Valid events that the ledger does not have: rejected again, or not projected yet. */
  not_settled: number
}

/** Settles what it can of these rejects. Those from `since` on, Unix ms, came after what the retry has found. */
async function settle(
  { tables, databases, schemas, versions }: RejectSource,
  wanted: RejectFilter,
  since: number,
): Promise<Settlement> {
  const settlement: Settlement = { settled: 0, not_settled: 0 }
  const decode = createDecoder(schemas.known)
  for await (const rejects of walkRejects({ tables, databases }, wanted)) {
    const records = rejects
      .filter(reject => reject.rejectedAt < since && !isCut(reject))
      .map(({ record }) => record)
    await schemas.learn(records)
    const valid = records.flatMap(record => {
      const event = decode(record)
      return 'key' in event ? [{ record, event }] : []
    })
    const present = await versions(valid.map(({ event }) => event))
    const settled = valid
      .filter(({ event }) => (present.get(entityOf(event)) ?? -1n) >= versionOf(event))
      .map(({ record }) => record)
    await settleRejects(tables, databases, settled)
    settlement.settled += settled.length
    settlement.not_settled += valid.length - settled.length
  }
  return settlement
}
