/** Writes the demo platform to an event log: first its history, then new events as time passes. */
import { encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import { keyOf, type StateEvent, topicOf } from '../../contracts/events/event.ts'
import type { EventWriter, NewRecord } from '../log/port.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { sampleEvents } from './sample.ts'
import { demoTrickle } from './trickle.ts'
import { unkindEvents } from './unkind.ts'

const batchRecordsMax = 2_000

/**
 * Appends the history that ends at `endMs`, in batches. Throws the writer's errors. An interrupted history is appended again from
 * the start: with the same end the events are the same, and a duplicate event has no effect.
 */
export async function appendDemo(
  writer: EventWriter,
  endMs: number,
  onProgress: (events: number) => void = () => {},
  encode: StateEncoder = encodeState,
): Promise<{ appended: number }> {
  const history = [...sampleEvents(endMs)].filter(({ data }) => data.changed_at <= endMs)
  let appended = 0
  while (appended < history.length) {
    const batch = history.slice(appended, appended + batchRecordsMax)
    await writer.append(batch.map(event => recordOf(event, encode)))
    appended += batch.length
    onProgress(appended)
  }
  return { appended }
}

/** Continues the platform whose history ended at `endMs`, until the signal is aborted. Throws the writer's errors. */
export async function runTrickle(
  writer: EventWriter,
  {
    endMs,
    intervalMs,
    signal,
    encode = encodeState,
    isUnkind = false,
  }: { endMs: number; intervalMs: number; signal: AbortSignal; encode?: StateEncoder; isUnkind?: boolean },
  { now, random, sleep }: Pick<Runtime, 'now' | 'random' | 'sleep'>,
): Promise<void> {
  const sources = [demoTrickle({ endMs, random }), ...(isUnkind ? [unkindEvents({ endMs, random })] : [])]
  for (;;) {
    await sleep(intervalMs, signal)
    if (signal.aborted) return
    const events = sources.flatMap(source => source.next(now()))
    const records = events.map(event => recordOf(event, encode))
    if (records.length > 0) await writer.append(records)
  }
}

function recordOf(event: StateEvent, encode: StateEncoder): NewRecord {
  return { topic: topicOf[event.type], key: Buffer.from(keyOf(event)), value: encode(event) }
}
