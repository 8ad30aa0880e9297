/** Readers of a group on Kafka that is ahead of what its owner has: they go back, also on a rebalance, and skip nothing. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type KafkaSettings, topicName } from '../../../services/shared/event-log/kafka/client.ts'
import { openKafkaInspector } from '../../../services/shared/event-log/kafka/inspector.ts'
import { type FindBehind, OffsetOutOfRange } from '../../../services/shared/event-log/kafka/offsets.ts'
import { partitionOf } from '../../../services/shared/event-log/kafka/partition.ts'
import { type KafkaReader, openKafkaReader } from '../../../services/shared/event-log/kafka/reader.ts'
import {
  commitAll,
  deliveriesOf,
  describeKafka,
  generous,
  groupOf,
  numbersOf,
  range,
  recordsOf,
  sessionMs,
  until,
} from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent, withAdmin } from '../../support/kafka/topics.ts'
import { movedLeader, type WatchedClient, watchClients } from '../../support/kafka/watched-client.ts'

const partition = partitionOf(Buffer.from('c_1/p'), 3)
const place = `pledges/${partition}`

describeKafka('a group that is ahead of its owner', ({ address, openWriter }) => {
  let settings: KafkaSettings
  let readers: KafkaReader[]
  /** What the owner has of the partition. */
  let recorded: number
  /** What the owner was told that the group has committed. */
  let told: ReadonlyMap<string, number>[]

  const findBehind: FindBehind = async (committed, all) => {
    told.push(all)
    const next = committed.get(place) ?? 0
    return new Map(next > recorded ? [[place, { recorded, from: recorded - 5 }]] : [])
  }

  beforeEach(async () => {
    settings = settingsFor(address())
    await makeTopics(settings, { partitions: 3 })
    readers = []
    recorded = 100
    told = []
    await (await openWriter(settings)).append(
      range(0, 100).map(number => ({
        topic: 'pledges',
        key: Buffer.from('c_1/p'),
        value: Buffer.from(String(number)),
      })),
    )
    const first = await open()
    await commitAll(first, await deliveriesOf(first, 100))
    await first.close()
  })

  afterEach(() => Promise.all(readers.map(reader => reader.close())))

  async function open(look = findBehind): Promise<KafkaReader> {
    const short = { sessionMs, heartbeatMs: 100, ...groupOf(settings) }
    const reader = await openKafkaReader({ ...settings, ...short }, { logger: silent, findBehind: look })
    readers.push(reader)
    return reader
  }

  async function committed(): Promise<number> {
    const [found] = await withAdmin(settings, admin =>
      admin.fetchOffsets({ ...groupOf(settings), topics: [topicName(settings, 'pledges')] }),
    )
    return Number(found?.partitions.find(at => at.partition === partition)?.offset)
  }

  test('asks its owner before it reads, also if the group is new, and tells each member what the whole group has committed', async () => {
    // A busy machine may have assigned the partitions again, after the commit.
    expect(told[0]).toEqual(new Map())
    told = []
    const first = await open()
    const second = await open()
    await until(async () => (await first.lag()).length + (await second.lag()).length === 9)
    expect(told.length).toBeGreaterThan(1)
    for (const all of told) expect(all).toEqual(new Map([[place, 100]]))
  })

  test('is asked once for each position, not again by each rebalance', async () => {
    const asked: string[] = []
    const first = await open(async (committed, all) => {
      asked.push(...committed.keys())
      return findBehind(committed, all)
    })
    const second = await open()
    await until(async () => (await first.lag()).length + (await second.lag()).length === 9)
    await second.close()
    await until(async () => (await first.lag()).length === 9)
    expect(asked).toEqual([place])
  })

  describe('with an owner whose look takes long', () => {
    let client: WatchedClient
    let jumpedMs: number

    beforeEach(() => {
      jumpedMs = 0
      client = watchClients()
      return () => client.restore()
    })

    /** Opens a reader whose clock advances by so much with each heartbeat, while the owner looks. */
    async function openSlowly(
      look: FindBehind,
      { stepMs, outageMsMax }: { stepMs: number; outageMsMax: number },
    ) {
      const slow: FindBehind = async (...of) => {
        client.onHeartbeat(() => {
          jumpedMs += stepMs
        })
        try {
          return await look(...of)
        } finally {
          client.onHeartbeat(() => {})
        }
      }
      const reader = await openKafkaReader(
        { ...settings, ...groupOf(settings), sessionMs, heartbeatMs: 100, outageMsMax },
        { logger: silent, findBehind: slow, monotonicMs: () => performance.now() + jumpedMs },
      )
      readers.push(reader)
      return reader
    }

    test('waits for the look longer than Kafka may be away, and repeats what Kafka refuses after it', async () => {
      const outageMsMax = 120_000
      const look: FindBehind = async () => {
        await until(() => jumpedMs > 2 * outageMsMax && client.asking() === 0)
        client.refuseNext(movedLeader())
        return new Map()
      }
      const reader = await openSlowly(look, { stepMs: 40_000, outageMsMax })
      expect(client.refused()).toBe(1)
      expect(await reader.lag()).toHaveLength(9)
    })

    test('says that the look took too long, not that the group gave no partitions', async () => {
      const never: FindBehind = () => new Promise(() => {})
      const opening = openSlowly(never, { stepMs: 100_000, outageMsMax: 10_000_000 })
      await expect(opening).rejects.toThrow(
        `the look for what the tables lack of what the group ${groupOf(settings).groupId} has read did not end within 900000 ms`,
      )
    })
  })

  test('goes on where it is, if the owner has as much', async () => {
    const reader = await open()
    const held = (await reader.lag()).find(at => at.topic === 'pledges' && at.partition === partition)
    expect(held).toMatchObject({ committed: 100, end: 100 })
    expect(
      (await reader.poll({ ...generous, waitMsMax: 500 }, new AbortController().signal)).records,
    ).toEqual([])
    expect(await committed()).toBe(100)
  })

  test('goes back, reports the lag, and commits what it reads from there', async () => {
    recorded = 60
    const inspector = await openKafkaInspector(
      { ...settings, ...groupOf(settings) },
      { logger: silent, findBehind },
    )
    const lag = (await inspector.group()).lag.find(at => at.topic === 'pledges' && at.partition === partition)
    await inspector.close()
    expect(lag).toMatchObject({ committed: 55, end: 100 })

    const reader = await open()
    const held = (await reader.lag()).find(at => at.topic === 'pledges' && at.partition === partition)
    expect(held).toMatchObject({ committed: 55, end: 100 })
    const deliveries = await deliveriesOf(reader, 10, { ...generous, recordsMax: 10 })
    expect(deliveries.flatMap(({ records }) => numbersOf(records))).toEqual(range(55, 65))
    await commitAll(reader, deliveries)
    expect(await committed()).toBe(65)
    // Now its owner has this, and the group is not ahead any more.
    recorded = 65
    await reader.close()
    expect(numbersOf(await recordsOf(await open(), 35))).toEqual(range(65, 100))
  })

  test('goes back when a rebalance gives the partition to another reader before anything was committed', async () => {
    recorded = 60
    const first = await open()
    await recordsOf(first, 45)
    const second = await open()
    await until(async () => (await first.lag()).length + (await second.lag()).length === 9)
    await first.close()
    expect(numbersOf(await recordsOf(second, 45))).toEqual(range(55, 100))
  })

  test('is refused if what the owner lacks is deleted, until an operator sets it to the first record', async () => {
    recorded = 60
    const topic = topicName(settings, 'pledges')
    await withAdmin(settings, async admin => {
      // kafkajs finds the partition's broker only in a topic that it has been asked about.
      await admin.fetchTopicOffsets(topic)
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: '80' }] })
    })
    await expect(open()).rejects.toThrow(OffsetOutOfRange)
    await expect(open()).rejects.toThrow(
      `${place}: the group is at 100, but the tables have only what is before 60`,
    )
    await withAdmin(settings, admin =>
      admin.setOffsets({ ...groupOf(settings), topic, partitions: [{ partition, offset: '80' }] }),
    )
    expect(numbersOf(await recordsOf(await open(), 20))).toEqual(range(80, 100))
  })
})
