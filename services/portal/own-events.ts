/**
 * How the portal writes: it appends a state to the event log, and answers once the projector has it in the ledger. It keeps no
 * copy, so what one portal has answered, every portal reads.
 *
 * How it fails: with `PortalUnavailable` if the log does not take the change in time, or no projector reads it in time. Then
 * the change may still land later.
 */
import { encodePortalEvent } from '../../contracts/events/portal-codec.ts'
import { type PortalEvent, portalKeyOf, portalTopicOf } from '../../contracts/events/portal-event.ts'
import type { EventWriter, NewRecord } from '../log/port.ts'
import { untilFound, within } from '../runtime/async/sleep.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { TablesError } from '../tables/port.ts'

export interface OwnEventsDependencies extends Pick<Runtime, 'monotonicMs' | 'sleep'> {
  writer: Pick<EventWriter, 'append'>
  /** How long a write takes at most, ms. Default 20 s. */
  writeMsMax?: number
}

/** The log or the projector does not keep up. The message is for the log. */
export class PortalUnavailable extends Error {
  override name = 'PortalUnavailable'
}

// After an append that came late, the ledger is looked at for as long.
const projectedMsMax = 15_000

/**
 * Appends the states, and resolves with what `look` finds in the ledger once it is not undefined. If the log takes them too
 * late for the caller, the look is still made.
 */
export async function writeOwn<T>(
  { writer, monotonicMs, sleep, writeMsMax = 20_000 }: OwnEventsDependencies,
  events: readonly PortalEvent[],
  look: () => Promise<T | undefined>,
): Promise<T> {
  async function appendAndLook(): Promise<T> {
    await writer.append(events.map(recordOf))
    const found = await untilFound(projectedMsMax, () => look().catch(whileAway), { monotonicMs, sleep })
    if (found !== undefined) return found
    const seconds = projectedMsMax / 1000
    throw new PortalUnavailable(
      `the change is in the event log, but no projector has read it within ${seconds} s`,
    )
  }
  const written = appendAndLook()
  // It may fail after the caller has its answer.
  written.catch(() => undefined)
  return within(
    writeMsMax,
    written,
    () => new PortalUnavailable('the event log did not take a change in time'),
  )
}

/** The record of a state. */
export function recordOf(event: PortalEvent): NewRecord {
  return {
    topic: portalTopicOf[event.type],
    key: Buffer.from(portalKeyOf(event)),
    value: encodePortalEvent(event),
  }
}

function whileAway(error: unknown): undefined {
  // Also one that hung until its time was over: the change is in the log, so no failure to read says that it was not made.
  if (!(error instanceof TablesError)) throw error
}
