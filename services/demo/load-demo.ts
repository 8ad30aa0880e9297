/** Writes the demo platform to an event log: first its history, then what goes on happening. */
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeState } from '../../contracts/events/codec.ts'
import { keyOf, type StateEvent, topicOf } from '../../contracts/events/event.ts'
import type { EventWriter, NewRecord } from '../shared/event-log/port.ts'
import { campaignsDefault, type DemoOptions } from './outline.ts'
import { demoEvents } from './platform.ts'
import { demoTrickle } from './trickle.ts'

/** How far the history is in the log. Campaigns come in the order of their creation, so they make a fair bar. */
export interface DemoProgress {
  events: number
  campaigns: number
  campaignsTotal: number
}

export interface AppendDemoOptions extends DemoOptions {
  writer: EventWriter
  onProgress?: (progress: DemoProgress) => void
  /** Stops between two batches by throwing its reason. */
  signal?: AbortSignal
}

const batchRecordsMax = 2_000

/**
 * Appends the platform's history, in batches. Throws what the writer throws; a history that was cut off is appended
 * anew with the same seed and `now`: it is the same events, and an event that comes twice counts once.
 */
export async function appendDemo(options: AppendDemoOptions): Promise<{ appended: number }> {
  const { writer, onProgress, signal } = options
  const campaignsTotal = options.campaigns ?? campaignsDefault
  const seen = new Set<string>()
  let appended = 0
  let batch: NewRecord[] = []
  const flush = async (): Promise<void> => {
    signal?.throwIfAborted()
    await writer.append(batch)
    appended += batch.length
    batch = []
    onProgress?.({ events: appended, campaigns: seen.size, campaignsTotal })
  }
  for (const event of demoEvents(options)) {
    if (event.type === 'campaign') seen.add(event.data.campaign_id)
    batch.push(recordOf(event))
    if (batch.length === batchRecordsMax) await flush()
  }
  if (batch.length > 0) await flush()
  return { appended }
}

export interface TrickleRun {
  writer: EventWriter
  /** As the history was appended with: its seed, and the time that it ended at, in ms. */
  seed: DemoOptions['seed']
  loadedAt: number
  campaigns?: number
  /** The clock, in ms since the epoch. */
  now: () => number
  /** How long to wait between two batches. */
  intervalMs: number
  signal: AbortSignal
}

/**
 * Goes on with the platform whose history ended at `loadedAt`, until the signal is aborted; an append that is under
 * way is finished first. Throws what the writer throws.
 */
export async function runTrickle(run: TrickleRun): Promise<void> {
  const { writer, seed, loadedAt, campaigns, now, intervalMs, signal } = run
  const trickle = demoTrickle({ seed, now: loadedAt, ...(campaigns !== undefined && { campaigns }) })
  while (await waited(intervalMs, signal)) {
    const records = trickle.next(now()).map(recordOf)
    if (records.length > 0) await writer.append(records)
  }
}

/** Waits, and says whether the whole time has passed: false where the signal was aborted. */
async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal })
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return !signal.aborted
}

function recordOf(event: StateEvent): NewRecord {
  return { topic: topicOf[event.type], key: Buffer.from(keyOf(event)), value: encodeState(event) }
}
