import type { Admin, Batch, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Range, readRangesOf } from '../../../../../services/shared/event-log/kafka/read-ranges.ts'

/** A consumer that delivers what the test says, when it says so. */
function fakeKafka() {
  let eachBatch: ((payload: EachBatchPayload) => Promise<void>) | undefined
  const running = Promise.withResolvers<void>()
  const consumer = {
    events: { CRASH: 'consumer.crash' },
    on: vi.fn(),
    connect: async () => undefined,
    subscribe: async () => undefined,
    async run(config: { eachBatch: typeof eachBatch }) {
      eachBatch = config.eachBatch
      running.resolve()
    },
    seek: vi.fn(),
    disconnect: vi.fn(async () => undefined),
  }
  const deleteGroups = vi.fn(async () => [])
  return {
    consumer,
    deleteGroups,
    kafka: { consumer: () => consumer } as unknown as Kafka,
    admin: { deleteGroups } as unknown as Admin,
    running: running.promise,
    async deliver(partition: number, offsets: number[], lastOffset = offsets.at(-1) ?? 0) {
      const messages = offsets.map(offset => ({ offset: String(offset) }) as KafkaMessage)
      const batch = { partition, messages, lastOffset: () => String(lastOffset) } as unknown as Batch
      await eachBatch?.({ batch } as EachBatchPayload)
    },
  }
}

describe('reading ranges of a topic', () => {
  let fake: ReturnType<typeof fakeKafka>
  let taken: string[]
  const take = async (partition: number, messages: KafkaMessage[]) => {
    taken.push(...messages.map(({ offset }) => `${partition}/${offset}`))
    return true
  }
  const read = (ranges: Range[], taking = take) =>
    readRangesOf(fake, { topic: 't', ranges, groupId: 'g', msMax: 1_000 }, taking)

  beforeEach(() => {
    vi.useFakeTimers()
    fake = fakeKafka()
    taken = []
  })

  afterEach(() => void vi.useRealTimers())

  test('hands over each message of them once, though fetches begin too early and come twice', async () => {
    const done = read([{ partition: 0, from: 5, end: 8 }])
    await fake.running
    await fake.deliver(0, [3, 4, 5])
    await fake.deliver(1, [5])
    await fake.deliver(0, [5, 6])
    await fake.deliver(0, [0, 1])
    await fake.deliver(0, [7, 8, 9])
    expect(await done).toEqual({ messages: 3, isLate: false })
    expect(taken).toEqual(['0/5', '0/6', '0/7'])
    expect(fake.deleteGroups).toHaveBeenCalledOnce()
    expect(fake.consumer.disconnect).toHaveBeenCalledOnce()
  })

  test('ends if the last offsets have no message any more', async () => {
    const done = read([{ partition: 0, from: 0, end: 8 }])
    await fake.running
    await fake.deliver(0, [1, 4], 9)
    expect(await done).toEqual({ messages: 2, isLate: false })
  })

  test('ends in time with what there was, and does not count the time that taking takes', async () => {
    const done = read([{ partition: 0, from: 0, end: 8 }], async (...messages) => {
      await vi.advanceTimersByTimeAsync(60_000)
      return take(...messages)
    })
    await fake.running
    await fake.deliver(0, [0, 1])
    await vi.advanceTimersByTimeAsync(900)
    await fake.deliver(0, [2])
    await vi.advanceTimersByTimeAsync(200)
    expect(await done).toEqual({ messages: 3, isLate: true })
    await fake.deliver(0, [3])
    expect(taken).toEqual(['0/0', '0/1', '0/2'])
  })

  test('fails if nothing came in time', async () => {
    const done = read([{ partition: 0, from: 0, end: 8 }])
    const failure = expect(done).rejects.toThrow('t was not read within 1000 ms')
    await fake.running
    await vi.advanceTimersByTimeAsync(1_000)
    await failure
    expect(fake.deleteGroups).toHaveBeenCalledOnce()
  })

  test('fails as taking fails', async () => {
    const done = read([{ partition: 0, from: 0, end: 8 }], async () => {
      throw new Error('the log is full')
    })
    const failure = expect(done).rejects.toThrow('the log is full')
    await fake.running
    await fake.deliver(0, [0])
    await failure
  })

  test('of nothing sends no request', async () => {
    expect(await read([{ partition: 0, from: 8, end: 8 }])).toEqual({ messages: 0, isLate: false })
    expect(fake.deleteGroups).not.toHaveBeenCalled()
  })
})
