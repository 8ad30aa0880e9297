/**
 * `pledgeview rejects retry`: what has become an event since it was rejected is appended to its topic as it came.
 *
 * Nothing is removed from the rejects, and whatever is appended twice changes nothing, so a retry may be killed and
 * repeated. What is still no event is not appended: it would only be rejected once more.
 */

import type { ChangeEvent } from '../../contracts/events/event.ts'
import { createDecoder } from '../projector/decode.ts'
import type { NewRecord, StoredReject } from '../shared/event-log/port.ts'
import {
  placeName,
  type RejectFilter,
  type RejectPlace,
  type Searched,
} from '../shared/event-log/reject-filter.ts'
import { createProgress, grouped } from '../shared/progress.ts'
import { type Io, messageOf, printJson } from './command.ts'
import { jsonOfReasons, jsonOfSearched, printReasons, printSearched } from './rejects-list.ts'
import { createReasonTally, type ReasonTally } from './rejects-reasons.ts'
import { findRejects, type RejectSource, type Schemas } from './rejects-source.ts'
import type { RetryTarget } from './rejects-target.ts'
import { entityOf, type Versions, versionOf } from './rejects-versions.ts'

export interface RetryOptions {
  /** What to retry: these, or all that the filter asks for. */
  wanted: { places: RejectPlace[] } | { filter: RejectFilter }
  isDry: boolean
  json: boolean
}

export interface RetryOutcome {
  matched: number
  /** Appended, or in a dry run what would be. */
  retried: number
  /** Events that the log has already, or a newer version of. */
  outdated: number
  noEvent: ReasonTally
  noEventCount: number
  /** Places of some whose value stands in their own topic alone. */
  omitted: string[]
  omittedCount: number
}

const omittedShownMax = 100
const partMax = 500

/** Runs the command. Exit code 0; 1 where something was asked for and nothing of it is in the log. */
export async function runRejectsRetry(source: RejectSource, options: RetryOptions, io: Io): Promise<number> {
  const { wanted, isDry, json } = options
  const outcome = newOutcome()
  const progress = createProgress({ stream: io.stderr, label: 'retrying' })
  const target = await source.openTarget({ isDry })
  let missing: string[] = []
  let searched: Searched
  try {
    const retry = createRetry(source.schemas, target, outcome)
    const take = async (rejects: readonly StoredReject[]): Promise<boolean> => {
      await retry(rejects)
      progress.update(outcome.matched, `${grouped(outcome.retried)} appended`)
      return true
    }
    if ('places' in wanted) {
      const found = await findRejects(source, wanted.places)
      ;({ missing, searched } = found)
      for (let at = 0; at < found.found.length; at += partMax) await take(found.found.slice(at, at + partMax))
    } else {
      searched = await source.walk(wanted.filter, take)
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
  if (json) printJson(io, jsonOf(outcome, missing, searched, isDry))
  else printOutcome(outcome, missing, isDry, io)
  printSearched(searched, io)
  const asked = outcome.matched + missing.length
  return asked === 0 || outcome.retried + outcome.outdated > 0 ? 0 : 1
}

/** Retries parts of a few hundred rejects, one after the other, and counts what becomes of them. */
export function createRetry(
  schemas: Schemas,
  target: RetryTarget,
  outcome: RetryOutcome,
): (rejects: readonly StoredReject[]) => Promise<void> {
  const decode = createDecoder(schemas.known)
  // What this retry has appended: parts come in no order of versions.
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
    // Of one entity the newest comes first here and makes the others outdated.
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

/** Without its value a record looks like a deletion, and must never be taken for one. */
function isOmitted({ record, omittedValueBytes }: StoredReject, outcome: RetryOutcome): boolean {
  if (omittedValueBytes === undefined) return false
  outcome.omittedCount++
  if (outcome.omitted.length < omittedShownMax) outcome.omitted.push(placeName(record))
  return true
}

function recordOf({ record: { topic, key, value, headers, repeatedHeaders } }: StoredReject): NewRecord {
  return { topic, key, value, ...(headers && { headers }), ...(repeatedHeaders && { repeatedHeaders }) }
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : Number(a > b)
}

function jsonOf(outcome: RetryOutcome, missing: readonly string[], searched: Searched, isDry: boolean) {
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
    searched: jsonOfSearched(searched),
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
  say(outcome.noEventCount, 'are still no events:')
  printReasons(outcome.noEvent.counts(), io)
  say(
    outcome.omittedCount,
    `have a value that stands in their own topic alone: ${outcome.omitted.join(', ')}`,
  )
  say(missing.length, `are not among the rejects: ${missing.join(', ')}`)
}
