/** Writes the demo platform to an event log: first its history, then new events as time passes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { encodeState } from '../../contracts/events/codec.ts'
import { keyOf, type StateEvent, topicOf } from '../../contracts/events/event.ts'
import type { EventWriter, NewRecord } from '../log/port.ts'
import { campaignsDefault, type DemoOptions } from './outline.ts'
import { demoEvents } from './platform.ts'
import { demoTrickle } from './trickle.ts'

/** How much of the history is in the log. Campaigns come in the order of their creation, so they suit a progress bar. */
export interface DemoProgress {
  events: number
  campaigns: number
  campaignsTotal: number
}

export interface AppendDemoOptions extends DemoOptions {
  writer: EventWriter
  onProgress?: (progress: DemoProgress) => void
  /** Stops between two batches and throws the signal's reason. */
  signal?: AbortSignal
}

const batchRecordsMax = 2_000

/**
 * Appends the platform's history, in batches. Throws the writer's errors. An interrupted history is appended again from the
 * start with the same seed and `now`: the events are the same, and a duplicate event has no effect.
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

/** The seed and the number of campaigns of the history. */
export interface TrickleRun extends Omit<DemoOptions, 'now'> {
  writer: EventWriter
  /** When the history ended, in ms. */
  loadedAt: number
  /** The clock, in ms since the epoch. */
  now: () => number
  /** How long to wait between two batches. */
  intervalMs: number
  signal: AbortSignal
}

/**
 * Continues the platform whose history ended at `loadedAt`, until the signal is aborted. An append in progress is finished
 * first. Throws the writer's errors.
 */
export async function runTrickle(run: TrickleRun): Promise<void> {
  const { writer, loadedAt, now, intervalMs, signal, ...platform } = run
  const trickle = demoTrickle({ ...platform, now: loadedAt })
  while (await waited(intervalMs, signal)) {
    const records = trickle.next(now()).map(recordOf)
    if (records.length > 0) await writer.append(records)
  }
}

/** Waits. Returns false if the signal was aborted before the time had passed. */
async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return !signal.aborted
}

function recordOf(event: StateEvent): NewRecord {
  return { topic: topicOf[event.type], key: Buffer.from(keyOf(event)), value: encodeState(event) }
}
