/**
 * `pledgeview rejects retry`: appends a rejected record to its topic again if it is a valid event now, with its
 * original bytes.
 *
 * Nothing is removed from the rejects, and appending a record twice changes nothing. So a retry may be killed and
 * repeated. A record that is still not a valid event is not appended, because it would only be rejected again.
 */

import type { ChangeEvent } from '../../../contracts/events/event.ts'
import type { NewRecord } from '../../log/port.ts'
import { createDecoder } from '../../projector/ingest/decode.ts'
import { messageOf } from '../../runtime/message-of.ts'
import { createProgress, grouped } from '../../runtime/progress.ts'
import { placeName } from '../../tables/rejects.ts'
import { type RejectFilter, type StoredReject, walkRejects } from '../../tables/stored-rejects.ts'
import { type Io, printJson } from '../command.ts'
import { jsonOfReasons, printReasons } from './list.ts'
import { createReasonTally, type ReasonTally } from './reasons.ts'
import { isCut } from './shown.ts'
import type { RejectSource, Schemas } from './source.ts'
import type { RetryTarget } from './target.ts'
import { entityOf, type Versions, versionOf } from './versions.ts'

export interface RetryOptions {
  wanted: RejectFilter
  isDry: boolean
  json: boolean
}

export interface RetryOutcome {
  matched: number
  /** Appended. In a dry run: what would be appended. */
  retried: number
  /** Events of which the log already has this version or a newer one. */
  outdated: number
  noEvent: ReasonTally
  noEventCount: number
  /** Some of the places whose record was cut when it was stored. */
  omitted: string[]
  omittedCount: number
}

const omittedShownMax = 100

/** Runs the command. Exit code 0; 1 if something was requested and nothing of it is in the log. */
export async function runRejectsRetry(source: RejectSource, options: RetryOptions, io: Io): Promise<number> {
  const { wanted, isDry, json } = options
  const outcome = newOutcome()
  const progress = createProgress({ stream: io.stderr, label: 'retrying' })
  const target = await source.openTarget({ isDry })
  const missing = new Set(wanted.places?.map(placeName))
  try {
    const retry = createRetry(source.schemas, target, outcome)
    for await (const rejects of walkRejects(source, wanted)) {
      await retry(rejects)
      for (const { record } of rejects) missing.delete(placeName(record))
      progress.update(outcome.matched, `${grouped(outcome.retried)} appended`)
    }
  } catch (error) {
    const before = isDry
      ? ''
      : `; ${grouped(outcome.retried)} were appended before, and a retry of all is harmless`
    throw new Error(`${messageOf(error)}${before}`, { cause: error })
  } finally {
    progress.done()
    await target.close()
  }
  if (json) printJson(io, jsonOf(outcome, [...missing], isDry))
  else printOutcome(outcome, [...missing], isDry, io)
  const asked = outcome.matched + missing.size
  return asked === 0 || outcome.retried + outcome.outdated > 0 ? 0 : 1
}

/** Retries parts of a few hundred rejects, one after the other, and counts the outcomes. */
export function createRetry(
  schemas: Schemas,
  target: RetryTarget,
  outcome: RetryOutcome,
): (rejects: readonly StoredReject[]) => Promise<void> {
  const decode = createDecoder(schemas.known)
  // What this retry has appended. The parts are not in the order of versions.
  const appended: Versions = new Map()

  async function decoded(rejects: readonly StoredReject[]): Promise<Ready[]> {
    const whole = rejects.filter(reject => !isOmitted(reject, outcome))
    await schemas.learn(whole.map(({ record }) => record))
    const ready: Ready[] = []
    for (const reject of whole) {
      const event = decode(reject.record)
      if ('reason' in event) {
        outcome.noEventCount++
        outcome.noEvent.add(reject, event.reason)
      } else if (!('key' in event)) {
        outcome.noEventCount++
        outcome.noEvent.add(reject, "is the portal's own, which has told its writer that it was not taken")
      } else {
        ready.push({ event, record: recordOf(reject) })
      }
    }
    return ready
  }

  return async rejects => {
    outcome.matched += rejects.length
    const ready = await decoded(rejects)
    const known = await target.versions(ready.map(({ event }) => event))
    // The newest version of an entity comes first here, so the older ones count as outdated.
    const inTurn = ready.toSorted((a, b) => compare(versionOf(b.event), versionOf(a.event)))
    const records: NewRecord[] = []
    const added: Versions = new Map()
    for (const { event, record } of inTurn) {
      const entity = entityOf(event)
      const present = [known, appended, added].map(versions => versions.get(entity) ?? -1n)
      if (present.some(version => version >= versionOf(event))) {
        outcome.outdated++
        continue
      }
      added.set(entity, versionOf(event))
      records.push(record)
    }
    await target.append(records)
    outcome.retried += records.length
    for (const [entity, version] of added) appended.set(entity, version)
  }
}

interface Ready {
  event: ChangeEvent
  record: NewRecord
}

export function newOutcome(): RetryOutcome {
  return {
    matched: 0,
    retried: 0,
    outdated: 0,
    noEvent: createReasonTally(),
    noEventCount: 0,
    omitted: [],
    omittedCount: 0,
  }
}

function isOmitted(reject: StoredReject, outcome: RetryOutcome): boolean {
  if (!isCut(reject)) return false
  outcome.omittedCount++
  if (outcome.omitted.length < omittedShownMax) outcome.omitted.push(placeName(reject.record))
  return true
}

function recordOf({ record: { topic, key, value, headers, repeatedHeaders } }: StoredReject): NewRecord {
  return { topic, key, value, ...(headers && { headers }), ...(repeatedHeaders && { repeatedHeaders }) }
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b)
}

function jsonOf(outcome: RetryOutcome, missing: readonly string[], isDry: boolean) {
  return {
    dry_run: isDry,
    matched: outcome.matched,
    retried: outcome.retried,
    outdated: outcome.outdated,
    no_event: outcome.noEventCount,
    by_reason: jsonOfReasons(outcome.noEvent.counts()),
    omitted: outcome.omittedCount,
    omitted_places: outcome.omitted,
    missing_places: missing,
  }
}

function printOutcome(outcome: RetryOutcome, missing: readonly string[], isDry: boolean, io: Io): void {
  const say = (count: number, text: string) => {
    if (count > 0) io.stdout.write(`${grouped(count)} ${text}\n`)
  }
  io.stdout.write(
    `${grouped(outcome.retried)} ${isDry ? 'would be' : 'were'} appended, of ${grouped(outcome.matched)}\n`,
  )
  say(outcome.outdated, 'are in the log already, as they are or newer')
  say(outcome.noEventCount, 'are still not valid events:')
  printReasons(outcome.noEvent.counts(), io)
  const cut = 'are larger than what is kept of a reject, so have their producer append them again'
  say(outcome.omittedCount, `${cut}: ${outcome.omitted.join(', ')}`)
  say(missing.length, `are not stored rejects: ${missing.join(', ')}`)
}
