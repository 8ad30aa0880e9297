/** Reads parts of a topic once, from one offset to another, outside of the projectors' group. */
import { randomUUID } from 'node:crypto'
import type * as Kafkajs from 'kafkajs'

/** A part of a partition: from `from`, up to but not including `end`. */
export interface Range {
  partition: number
  from: number
  end: number
}

export interface RangesOf {
  /** The topic's name in the cluster. */
  topic: string
  ranges: readonly Range[]
  /** The prefix of the temporary group that it reads in. */
  groupId: string
  /** How long reading may take, without the time of `take`, ms. */
  msMax: number
}

export interface RangesRead {
  /** How many messages were passed on. */
  messages: number
  /** Whether the time ran out before the ranges were read. */
  isLate: boolean
}

// A member that is silent for longer is removed from its group and joins again. That is slow, but it misses nothing.
const sessionMs = 60_000
// Before decompression, unless one batch alone is larger. kafkajs makes several objects of each message of a fetch.
const fetchBytesMax = 256 * 1024

/**
 * Passes on every message of the ranges once, in order within a partition, until `take` resolves with false. kafkajs
 * reads only in groups, so this uses a temporary group and removes it again. Rejects with the error of `take`, or if
 * the time runs out before the first message.
 */
export async function readRangesOf(
  { kafka, admin }: { kafka: Kafkajs.Kafka; admin: Kafkajs.Admin },
  { topic, ranges, groupId, msMax }: RangesOf,
  take: (partition: number, messages: Kafkajs.KafkaMessage[]) => Promise<boolean>,
): Promise<RangesRead> {
  const open = new Map(
    ranges
      .filter(({ from, end }) => from < end)
      .map(range => [range.partition, { ...range, next: range.from }]),
  )
  if (open.size === 0) return { messages: 0, isLate: false }
  const ownGroup = `${groupId}-look-${randomUUID()}`
  const consumer = kafka.consumer({
    groupId: ownGroup,
    sessionTimeout: sessionMs,
    maxWaitTimeInMs: 100,
    maxBytes: fetchBytesMax,
    maxBytesPerPartition: fetchBytesMax,
  })
  const { promise: isRead, resolve, reject } = Promise.withResolvers<RangesRead>()
  // After a failed connect this promise is never awaited. Its rejection must not count as unhandled.
  isRead.catch(() => undefined)
  const clock = createClock(msMax, () => end(true))
  let messages = 0
  let isOver = false

  function end(isLate: boolean): void {
    isOver = true
    clock.stop()
    if (isLate && messages === 0) reject(new Error(`${topic} was not read within ${msMax} ms`))
    else resolve({ messages, isLate })
  }

  function fail(cause: unknown): void {
    isOver = true
    clock.stop()
    reject(cause)
  }

  async function handle(batch: Kafkajs.Batch): Promise<void> {
    const range = open.get(batch.partition)
    if (isOver || !range) return
    // kafkajs may deliver messages from the topic's start before it seeks, and again after a new join.
    const wanted = batch.messages.filter(
      ({ offset }) => Number(offset) >= range.next && Number(offset) < range.end,
    )
    range.next = Math.max(range.next, Number(batch.lastOffset()) + 1)
    if (range.next >= range.end) open.delete(batch.partition)
    messages += wanted.length
    clock.stop()
    const isMoreWanted = wanted.length === 0 || (await take(batch.partition, wanted))
    if (isMoreWanted && open.size > 0) clock.start()
    else end(false)
  }

  consumer.on(consumer.events.CRASH, ({ payload: { error } }) => fail(error))
  try {
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    clock.start()
    await consumer.run({
      autoCommit: false,
      eachBatch: ({ batch }) => handle(batch).catch(fail),
    })
    for (const { partition, from } of open.values()) consumer.seek({ topic, partition, offset: String(from) })
    return await isRead
  } finally {
    isOver = true
    clock.stop()
    await consumer.disconnect()
    await admin.deleteGroups([ownGroup])
  }
}

/** A timer that counts only the time in which it runs. */
function createClock(msMax: number, onEnd: () => void): { start(): void; stop(): void } {
  let leftMs = msMax
  let startedMs = 0
  let timer: NodeJS.Timeout | undefined
  return {
    start() {
      startedMs = performance.now()
      timer = setTimeout(onEnd, leftMs)
    },
    stop() {
      if (!timer) return
      clearTimeout(timer)
      timer = undefined
      leftMs = Math.max(0, leftMs - (performance.now() - startedMs))
    },
  }
}
