/** Readers on Kafka that are told where to begin, as projectors are by the positions in the tables. */
import type { Admin, Kafka } from 'kafkajs'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'
import {
  type FindStarts,
  type LogState,
  type Start,
  SupersededAssignment,
} from '../../../services/log/port.ts'
import { range, readDeliveries, readRecords } from '../../support/events/event-log-records.ts'
import { commitAll, groupOf, type KafkaSuite, numbered, numbersOf } from '../../support/kafka/suite.ts'
import { deleteBefore, makeTopics, removeTopics, settingsFor, withAdmin } from '../../support/kafka/topics.ts'

export function describeStarts({ address, openReader, openWriter }: KafkaSuite): void {
  let settings: KafkaSettings
  let states: LogState[]
  let begunAnew: string[]

  beforeEach(async () => {
    settings = settingsFor(address())
    states = []
    begunAnew = []
    await makeTopics(settings, { partitions: 1 })
  })

  function startsAt(start?: Start): FindStarts {
    return {
      async find(state) {
        states.push(state)
        return new Map(start && [['campaigns/0', start]])
      },
      beginAnew: ({ topic, partition }, reason) => void begunAnew.push(`${topic}/${partition}: ${reason}`),
    }
  }

  async function append(from: number, count: number): Promise<void> {
    const writer = await openWriter(settings)
    await writer.append(numbered(from, count).map(record => ({ ...record, topic: 'campaigns' })))
  }

  /** Appends records, reads and commits them, and returns where a reader begins that has read some of them. */
  async function readBefore({ count, next }: { count: number; next: number }): Promise<Start> {
    await append(0, count)
    const reader = await openReader(settings)
    const deliveries = await readDeliveries(reader, count)
    await commitAll(reader, deliveries)
    await reader.close()
    const last = deliveries.flatMap(({ records }) => records).find(({ offset }) => offset === next - 1)
    return { next, lastAt: last?.appendedAt ?? 0 }
  }

  async function committed(): Promise<number> {
    const topic = topicName(settings, 'campaigns')
    const [found] = await withAdmin(settings, admin =>
      admin.fetchOffsets({ ...groupOf(settings), topics: [topic] }),
    )
    return Number(found?.partitions[0]?.offset)
  }

  /** Until the end of the test, every admin of kafkajs has these methods instead of its own. */
  function spyOnAdmin(methods: (own: Admin) => Partial<Admin>): void {
    const { prototype } = loadKafkajs().Kafka
    const { admin } = prototype
    vi.spyOn(prototype, 'admin').mockImplementation(function (this: Kafka, config) {
      const own = admin.call(this, config)
      return { ...own, ...methods(own) }
    })
    onTestFinished(() => void vi.restoreAllMocks())
  }

  test('begins there, before or after what the group has committed, and never moves the group back', async () => {
    const start = await readBefore({ count: 100, next: 40 })
    const before = await openReader(settings, startsAt(start))
    expect(states[0]).toMatchObject({ log: before.log, remembered: { watermark: 0, shown: 0 } })
    expect(states[0]?.partitions).toContainEqual({ topic: 'campaigns', partition: 0, low: 0, end: 100 })
    const lag = async () => (await before.lag()).find(({ topic }) => topic === 'campaigns')
    expect(await lag()).toMatchObject({ committed: 40, end: 100 })

    const [some] = await readDeliveries(before, 1, { recordsMax: 10, bytesMax: 10_000, waitMsMax: 60_000 })
    if (!some) throw new Error('nothing came')
    expect(numbersOf(some.records)).toEqual(range(40, 50))
    await before.commit(some.assignment, some.positions)
    await before.rememberWatermark(5_000, 4_000)
    expect(await lag()).toMatchObject({ committed: 50, end: 100 })
    expect(await committed()).toBe(100)
    expect(numbersOf(await readRecords(before, 50))).toEqual(range(50, 100))
    await before.close()

    await append(100, 20)
    const after = await openReader(settings, startsAt({ next: 110, lastAt: 0 }))
    expect(states[1]?.remembered).toEqual({ watermark: 5_000, shown: 4_000 })
    const rest = await readDeliveries(after, 10)
    expect(numbersOf(rest.flatMap(({ records }) => records))).toEqual(range(110, 120))
    await vi.waitFor(async () => expect(await committed()).toBe(110), { timeout: 60_000, interval: 100 })
    await commitAll(after, rest)
    expect(await committed()).toBe(120)
    // A group that has committed nothing.
    const ofOther = { groupId: `${groupOf(settings).groupId}-other` }
    const other = await openReader({ ...settings, ...ofOther }, startsAt(start))
    expect(numbersOf(await readRecords(other, 80))).toEqual(range(40, 120))
    expect(begunAnew).toEqual([])
  })

  // What finds the positions takes the assignment that asks last for the present one.
  test('asks for the positions of the present assignment last, and not for those of one that has ended', async () => {
    await append(0, 3)
    const reader = await openReader(settings, startsAt())
    const asked = states.length
    await Promise.all([reader.restart(), reader.restart(), reader.restart()])
    const [first] = await readDeliveries(reader, 3)
    expect(states.slice(asked).map(({ assignment }) => assignment)).toEqual([first?.assignment])
  })

  test('asks for them only when those of the assignment before are found: a late answer would make that one the present one', async () => {
    let answers = 0
    spyOnAdmin(own => ({
      async fetchOffsets(options) {
        const offsets = await own.fetchOffsets(options)
        answers++
        return offsets
      },
    }))
    const { promise: found, resolve: find } = Promise.withResolvers<void>()
    const asked: string[] = []
    const reader = await openReader(settings, {
      ...startsAt(),
      async find({ assignment }) {
        asked.push(assignment)
        if (asked.length > 1) await found
        return new Map()
      },
    })
    await reader.restart()
    await expect.poll(() => asked.length).toBe(2)
    const before = answers
    await reader.restart()
    // The last answer of Kafka that is needed before its turn. In its turn it asks for the ranges: these take as long.
    await expect.poll(() => answers).toBe(before + 2)
    const name = topicName(settings, 'campaigns')
    for (let times = 0; times < 3; times++) await withAdmin(settings, admin => admin.fetchTopicOffsets(name))
    expect(asked).toHaveLength(2)
    find()
    await reader.lag()
    expect(asked).toHaveLength(3)
  })

  test('tells the lag of the assignment that begins while it is asked for, not of the one that ends', async () => {
    await append(0, 100)
    const start = { next: 100, lastAt: 0 }
    const reader = await openReader(settings, startsAt(start))
    start.next = 40
    const asked = reader.lag()
    await reader.restart()
    const campaigns = (await asked).find(({ topic }) => topic === 'campaigns')
    expect(campaigns).toMatchObject({ committed: 40, end: 100 })
  })

  // Without a join the group takes a commit of the assignment before. The next commit must not move the group back behind it.
  test('learns what the group has behind a commit that is under way', async () => {
    await append(0, 10)
    const calls: string[] = []
    spyOnAdmin(own => ({
      fetchOffsets(options) {
        calls.push('asked')
        return own.fetchOffsets(options)
      },
    }))
    const reader = await openReader(settings, startsAt())
    const [first] = await readDeliveries(reader, 10)
    calls.length = 0
    const committing = reader.commit(first.assignment, first.positions).finally(() => calls.push('committed'))
    // By then its request is sent.
    await new Promise(resolve => setImmediate(resolve))
    await Promise.all([reader.restart(), expect(committing).rejects.toThrow(SupersededAssignment)])
    await readDeliveries(reader, 10)
    expect(calls).toEqual(['committed', 'asked', 'asked'])
  })

  test('fails if the brokers are of another cluster after a join: what it reads would be stored as of the first', async () => {
    let clusterId: string | undefined
    spyOnAdmin(own => ({
      async describeCluster() {
        const cluster = await own.describeCluster()
        return { ...cluster, clusterId: clusterId ?? cluster.clusterId }
      },
    }))
    const reader = await openReader(settings, startsAt())
    clusterId = 'another'
    await reader.restart()
    await expect(readDeliveries(reader, 1)).rejects.toThrow(
      `no longer of ${reader.log}: start the process again`,
    )
    expect(states.map(({ log }) => log)).toEqual([reader.log])
  })

  // Unless it is shorter, it has another record there: event-log.conformance.ts.
  test('begins at the first record of a topic that was made again and is shorter', async () => {
    const start = await readBefore({ count: 100, next: 40 })
    await removeTopics(settings)
    await makeTopics(settings, { partitions: 1 })
    await append(1_000, 10)
    const reader = await openReader(settings, startsAt(start))
    expect(numbersOf(await readRecords(reader, 10))).toEqual(range(1_000, 1_010))
    expect(begunAnew).toEqual(['campaigns/0: it is read up to 40, and the log ends at 10'])
  })

  test('fails if the log has deleted records from there on, and names the ways on', async () => {
    const start = await readBefore({ count: 100, next: 40 })
    await deleteBefore(settings, { topic: 'campaigns', partition: 0 }, 50)
    const opening = openReader(settings, startsAt(start))
    await expect(opening).rejects.toThrow(
      /read up to 40, and the records before 50 are deleted.*pledgeview restored/,
    )
    // What the tables never had is no gap of theirs.
    expect(numbersOf(await readRecords(await openReader(settings, startsAt()), 50))).toEqual(range(50, 100))
  })
}
