/** Readers of one group on Kafka: slow callers, rebalances, hand-overs, and positions that the log no longer has. */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { topics } from '../../../contracts/events/event.ts'
import { type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import { foldPartition, readWatermark } from '../../../services/log/kafka/group/commits.ts'
import { type EventReader, SupersededAssignment } from '../../../services/log/port.ts'
import { generous, range, readDeliveries, readRecords } from '../../support/events/event-log-records.ts'
import {
  commitAll,
  describeKafkaBroker,
  groupOf,
  numbered,
  numbersOf,
  sessionMs,
  until,
} from '../../support/kafka/suite.ts'
import { deleteBefore, makeTopics, settingsFor, withAdmin } from '../../support/kafka/topics.ts'

const never = new AbortController().signal
const partitions = 3
// Its records are in the partition of the fold.
const foldKey = Buffer.from('c_3')

describeKafkaBroker('a group', ({ broker, openReader, openWriter }) => {
  let settings: KafkaSettings

  beforeEach(async () => {
    settings = settingsFor(broker().address)
    await makeTopics(settings, { partitions })
  })

  describe('keeps a reader', () => {
    test('whose caller writes a batch for longer than the session', async () => {
      const writer = await openWriter(settings)
      await writer.append(numbered(0, 100))
      const reader = await openReader(settings)
      const deliveries = await readDeliveries(reader, 100)
      // Nothing but time can show it: the group would have forgotten a reader that it had not heard of meanwhile.
      await delay(1.5 * sessionMs)
      await commitAll(reader, deliveries)
      expect(await committed()).toBe(100)
      await writer.append(numbered(100, 10))
      expect(numbersOf(await readRecords(reader, 10))).toEqual(range(100, 110))
    })
  })

  describe('on a rebalance', () => {
    test('during a write loses nothing, and commits nothing of the assignment before', async () => {
      const writer = await openWriter(settings)
      await writer.append(numbered(0, 300))
      const first = await openReader(settings)
      const late = await readDeliveries(first, 300)
      const second = await openReader(settings)
      await expect(commitAll(first, late)).rejects.toThrow(SupersededAssignment)
      expect(await committed()).toBe(0)

      await writer.append(numbered(300, 100))
      const seen = await drain([first, second])
      expect([...new Set(seen)].toSorted((a, b) => a - b)).toEqual(range(0, 400))
      // Each partition is read by one of them, so nothing came twice after the rebalance.
      expect(seen).toHaveLength(400)
      expect(await committed()).toBe(400)
    })

    test('drops what was fetched and not taken, and fetches it again from the committed offset', async () => {
      const writer = await openWriter(settings)
      await writer.append(numbered(0, 300))
      const first = await openReader(settings)
      const [some] = await readDeliveries(first, 1, { ...generous, recordsMax: 30 })
      if (!some) throw new Error('nothing came')
      await first.commit(some.assignment, some.positions)
      await until(() => first.buffered().records === 270)
      const second = await openReader(settings)
      const seen = await drain([first, second])
      const rest = range(0, 300).filter(number => !numbersOf(some.records).includes(number))
      expect(seen.toSorted((a, b) => a - b)).toEqual(rest)
    })
  })

  describe('hands over', () => {
    test('all partitions at once, and the fold, when the reader that leads closes, long before its session would end', async () => {
      const writer = await openWriter(settings)
      const patient = { ...settings, sessionMs: 60_000 }
      const [first, second] = [await openReader(patient), await openReader(patient)]
      await until(
        async () => (await first.lag()).length + (await second.lag()).length === topics.length * partitions,
      )
      await until(() => first.leads() !== second.leads())
      const [leading, following] = first.leads() ? [first, second] : [second, first]
      await leading.close()
      expect(leading.leads()).toBe(false)
      await until(async () => (await following.lag()).length === topics.length * partitions)
      await until(() => following.leads())
      await writer.append(numbered(0, 50))
      expect(numbersOf(await readRecords(following, 50))).toEqual(range(0, 50))
      await expect(leading.poll(generous, never)).rejects.toThrow('closed')
    })

    test('the fold while the leading reader is cut off, and that reader no longer reports that it leads', async () => {
      const { address, proxy } = broker().proxied
      const isolated = await openReader({ ...settings, brokers: [address] })
      expect(isolated.leads()).toBe(true)
      proxy.holdAnswers()
      try {
        const other = await openReader(settings)
        await until(() => !isolated.leads())
        await until(() => other.leads())
      } finally {
        proxy.release()
      }
    })
  })

  describe('does not go on', () => {
    test('behind records that are deleted while it falls back, and says so instead of leaving them out, and the group remembers the watermark', async () => {
      await (await openWriter({ ...settings, compression: 'none' })).append(inFoldPartition(100, 100_000))
      const reader = await openReader({ ...settings, bufferBytesMax: 1_000_000 })
      const [first] = await readDeliveries(reader, 1, { ...generous, recordsMax: 1 })
      if (!first) throw new Error('nothing came')
      await reader.commit(first.assignment, first.positions)
      await reader.rememberWatermark(7_000, 6_000)
      await deleteBefore(settings, foldPartition, 90)
      const seen: number[] = []
      const reading = async () => {
        for (;;) seen.push(...numbersOf((await reader.poll({ ...generous, recordsMax: 5 }, never)).records))
      }
      await expect(reading()).rejects.toThrow('without skipping records')
      expect(seen.length).toBeLessThan(89)
      expect(seen.toSorted((a, b) => a - b)).toEqual(range(1, seen.length + 1))
      // Nor does the next reader, though kafkajs has given the position up meanwhile.
      await expect(openReader(settings)).rejects.toThrow('without skipping records')
      const own = { ...settings, ...groupOf(settings) }
      const remembered = await withAdmin(settings, admin => readWatermark({ admin, names: own }, own.groupId))
      expect(remembered).toEqual({ watermark: 7_000, shown: 6_000 })
    })
  })

  /** Polls and commits until the group stands at the end of the log; returns what was delivered. */
  async function drain(readers: readonly EventReader[]): Promise<number[]> {
    const seen: number[] = []
    while ((await left(readers)) > 0) {
      for (const reader of readers) {
        const { records, positions, assignment } = await reader.poll({ ...generous, waitMsMax: 50 }, never)
        seen.push(...numbersOf(records))
        await reader.commit(assignment, positions)
      }
    }
    return seen
  }

  async function left(readers: readonly EventReader[]): Promise<number> {
    const lags = (await Promise.all(readers.map(reader => reader.lag()))).flat()
    if (lags.length < topics.length * partitions) return Number.POSITIVE_INFINITY
    return lags.reduce((sum, { committed: at, end }) => sum + end - at, 0)
  }

  /** How many pledges the group has committed, as the broker says. */
  async function committed(): Promise<number> {
    const [found] = await withAdmin(settings, admin =>
      admin.fetchOffsets({ ...groupOf(settings), topics: [topicName(settings, 'pledges')] }),
    )
    return (found?.partitions ?? []).reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0)
  }
})

function inFoldPartition(count: number, bytes: number) {
  return numbered(0, count, bytes).map(record => ({ ...record, topic: foldPartition.topic, key: foldKey }))
}
