/**
 * Polls the journal's topics: within bounds, fairly, and without blocking the event loop.
 *
 * Accounts, API keys and notices come first, then campaigns, then pledges. None takes more than half of the remaining room while another
 * has records waiting. A topic that got nothing because there was no room comes first in the next poll, so none waits
 * for ever.
 */
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type Delivery, type LogRecord, type PollBounds, readingOrder } from '../port.ts'
import type { Cursor } from './cursor.ts'
import { onlyPartition } from './file.ts'

// How often an empty log is polled.
const lookMs = 25
// How many rows are read before the reader yields to the event loop.
const sliceRowsMax = 2_000

interface Room {
  records: number
  bytes: number
}

/** One poll of the port. It looks at least once, even if the wait is 0. The signal ends the wait. */
export async function pollCursors(
  cursors: readonly Cursor[],
  bounds: PollBounds,
  signal: AbortSignal,
): Promise<Pick<Delivery, 'records' | 'positions'>> {
  const deadline = performance.now() + bounds.waitMsMax
  const before = cursors.map(cursor => cursor.next)
  while (!signal.aborted) {
    const records = await readRound(cursors, bounds)
    const waitMs = Math.min(lookMs, deadline - performance.now())
    if (records.length > 0 || waitMs <= 0) {
      const moved = cursors.filter((cursor, index) => cursor.next !== before[index])
      const partition = onlyPartition
      const positions = moved.map(({ topic, next, lastAt }) => ({ topic, partition, next, lastAt }))
      return { records, positions }
    }
    // An abort ends the wait with a rejection, and the loop by its condition.
    await delay(waitMs, undefined, { signal }).catch(() => undefined)
  }
  return { records: [], positions: [] }
}

async function readRound(
  cursors: readonly Cursor[],
  { recordsMax, bytesMax }: PollBounds,
): Promise<LogRecord[]> {
  const room: Room = { records: recordsMax, bytes: bytesMax }
  const records: LogRecord[] = []
  const dry = new Set<Cursor>()
  const start = new Map(cursors.map(cursor => [cursor, cursor.next]))
  const inTurn = cursors.toSorted((a, b) => b.passedOver - a.passedOver || rank(a) - rank(b))
  // In the first round each topic leaves half of the room to those behind it. In the second round the unused room
  // goes to topics that have more.
  for (const shareOfFirst of [0.5, 1]) {
    for (const cursor of inTurn) {
      if (dry.has(cursor)) continue
      const share = cursor === inTurn.at(-1) ? 1 : shareOfFirst
      const part: Room = { records: Math.ceil(room.records * share), bytes: Math.ceil(room.bytes * share) }
      const used = await readOn(cursor, part, records)
      room.records -= used.records
      room.bytes -= used.bytes
      if (used.isDry) dry.add(cursor)
    }
  }
  for (const cursor of cursors) {
    const isPassedOver = !dry.has(cursor) && cursor.next === start.get(cursor)
    cursor.passedOver = isPassedOver ? cursor.passedOver + 1 : 0
  }
  return records
}

/** Reads on in one topic until its part of the room is full or the topic has no more. A first record always fits. */
async function readOn(
  cursor: Cursor,
  part: Readonly<Room>,
  records: LogRecord[],
): Promise<Room & { isDry: boolean }> {
  const used: Room = { records: 0, bytes: 0 }
  let rowsMax = sliceRowsMax
  while (used.records < part.records) {
    const { rows, bytes } = cursor.measure(Math.min(rowsMax, part.records - used.records))
    if (rows === 0) return { ...used, isDry: true }
    const fits = used.bytes + bytes <= part.bytes
    if (fits || (rows === 1 && records.length === 0)) {
      records.push(...cursor.read(rows))
      used.records += rows
      used.bytes += bytes
      await yieldToEventLoop()
    } else if (rows > 1) {
      rowsMax = Math.floor(rows / 2)
    } else {
      break
    }
  }
  return { ...used, isDry: false }
}

function rank({ topic }: Cursor): number {
  return readingOrder.indexOf(topic)
}
