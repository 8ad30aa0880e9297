/** Reads from an event log, and compares records, for the tests of all event logs. */
import type { Delivery, EventReader, LogRecord, NewRecord, PollBounds } from '../../../services/log/port.ts'

// Only a hang takes this long.
export const generous: PollBounds = { recordsMax: 10_000, bytesMax: 64 * 1024 ** 2, waitMsMax: 60_000 }
export const never = new AbortController().signal

export function pledge(number: number, value: Uint8Array = Buffer.from(`${number}`)): NewRecord {
  return { topic: 'pledges', key: Buffer.from('c_1'), value }
}

export function pledges(from: number, count: number): NewRecord[] {
  return range(from, from + count).map(number => pledge(number))
}

/** Polls until so many records have come. Throws if a poll brings none. */
export async function readDeliveries(
  reader: EventReader,
  count: number,
  bounds = generous,
): Promise<[Delivery, ...Delivery[]]> {
  const deliveries: Delivery[] = []
  for (let left = count; left > 0; ) {
    const delivery = await reader.poll(bounds, never)
    if (delivery.records.length === 0) throw new Error(`${left} of ${count} records never came`)
    left -= delivery.records.length
    deliveries.push(delivery)
  }
  const [first, ...rest] = deliveries
  if (!first) throw new Error('no records were asked for')
  return [first, ...rest]
}

export async function readRecords(
  reader: EventReader,
  count: number,
  bounds = generous,
): Promise<LogRecord[]> {
  return (await readDeliveries(reader, count, bounds)).flatMap(({ records }) => records)
}

export async function waitingByTopic(reader: EventReader): Promise<Record<string, number>> {
  const waiting: Record<string, number> = {}
  for (const { topic, committed, end } of await reader.lag())
    waiting[topic] = (waiting[topic] ?? 0) + end - committed
  return waiting
}

export function partitionsOf(records: readonly LogRecord[]): LogRecord[][] {
  return [...Map.groupBy(records, ({ topic, partition }) => `${topic}/${partition}`).values()]
}

export function lastOf<T>(items: readonly T[]): T {
  const last = items.at(-1)
  if (last === undefined) throw new Error('there is none')
  return last
}

export function numbersOf(records: readonly LogRecord[]): number[] {
  return records.map(({ value }) => Number(Buffer.from(value ?? []).toString()))
}

export function bytesOf(records: readonly LogRecord[]): number {
  return records.reduce((sum, { key, value }) => sum + (key?.length ?? 0) + (value?.length ?? 0), 0)
}

export function plain({ topic, key, value }: NewRecord): string {
  return JSON.stringify([topic, hex(key), hex(value)])
}

function hex(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString('hex')
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

export function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export function byTopic(
  a: { topic: string; partition: number },
  b: { topic: string; partition: number },
): number {
  return byText(a.topic, b.topic) || a.partition - b.partition
}
