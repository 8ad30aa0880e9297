/**
 * What is written to Kafka and read from it: compression, compaction, how much is held of a backlog, and where librdkafka puts a key,
 * compared with where our writer puts it. Java and Python: test/clients/producers.test.ts.
 */
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { topics } from '../../../contracts/events/event.ts'
import { createKafka, type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import { fetchBytesMax } from '../../../services/log/kafka/group/consumer.ts'
import { openKafkaInspector } from '../../../services/log/kafka/inspector.ts'
import { partitionOf } from '../../../services/log/kafka/record.ts'
import { compressions } from '../../../services/log/kafka/repairs/codecs.ts'
import { loadKafkajs } from '../../../services/log/kafka/repairs/library.ts'
import { generous, range, readDeliveries, readRecords } from '../../support/events/event-log-records.ts'
import { kcat, kcatProgram } from '../../support/kafka/kcat.ts'
import {
  commitAll,
  committedBy,
  groupOf,
  type KafkaSuite,
  numbered,
  numbersOf,
  until,
} from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor, silent, withAdmin } from '../../support/kafka/topics.ts'
import { needs } from '../../support/runner/requirements.ts'

const never = new AbortController().signal
const compressed = compressions.filter(compression => compression !== 'none')

export function describeRecords({ address, openReader, openWriter }: KafkaSuite): void {
  let settings: KafkaSettings

  beforeEach(() => {
    settings = settingsFor(address())
  })

  describe('delivers records', () => {
    test('that kcat and a writer compress, in each way, are read by a reader and by kcat', async context => {
      needs(context, kcatProgram)
      await makeTopics(settings)
      const at = ['-b', address(), '-t', topicName(settings, 'pledges')]
      for (const [index, compression] of compressed.entries()) {
        const from = 500 * index
        const writer = await openWriter({ ...settings, compression })
        await writer.append(numbered(from, 250, 300))
        const lines = range(from + 250, from + 500).map(number => `key-${number}:${number}`)
        await kcat([...at, '-P', '-K:', '-z', compression], `${lines.join('\n')}\n`)
      }
      const all = range(0, 500 * compressed.length)
      expect(numbersOf(await readRecords(await openReader(settings), all.length))).toEqual(all)
      const output = await kcat([...at, '-C', '-e', '-q', '-f', '%s\n'])
      const numbers = output
        .trimEnd()
        .split('\n')
        .map(line => Number(line.trim()))
      expect(numbers.toSorted((a, b) => a - b)).toEqual(all)
    })

    test('that the broker itself compresses, in each way, are read', async () => {
      await makeTopics(settings)
      const ways = compressed.map((value, index) => ({ value, topic: topics[index] ?? 'pledges' }))
      await withAdmin(settings, admin =>
        admin.alterConfigs({
          validateOnly: false,
          resources: ways.map(({ value, topic }) => ({
            type: loadKafkajs().ConfigResourceTypes.TOPIC,
            name: topicName(settings, topic),
            configEntries: [{ name: 'compression.type', value }],
          })),
        }),
      )
      const writer = await openWriter({ ...settings, compression: 'none' })
      for (const [index, { topic }] of ways.entries())
        await writer.append(numbered(500 * index, 500, 300).map(record => ({ ...record, topic })))
      const all = range(0, 500 * ways.length)
      expect(numbersOf(await readRecords(await openReader(settings), all.length))).toEqual(all)
    })

    test('that many requests carry, and some near the limit, arrive in order', async () => {
      await makeTopics(settings, { partitions: 1 })
      const writer = await openWriter({ ...settings, compression: 'none' })
      const records = range(0, 40).map(number => ({
        topic: 'pledges' as const,
        key: Buffer.from('k'),
        value: number % 10 === 3 ? randomBytes(1_000_000) : Buffer.alloc(60_000, number),
      }))
      await Promise.all([writer.append(records.slice(0, 25)), writer.append(records.slice(25))])
      const delivered = await readRecords(await openReader(settings), 40)
      for (const [index, { value }] of delivered.entries()) {
        expect(
          Buffer.from(value ?? []).equals(records[index]?.value ?? Buffer.alloc(0)),
          `record ${index}`,
        ).toBe(true)
      }
    })

    test('behind a batch that compaction has emptied are read', async context => {
      needs(context, kcatProgram)
      await makeTopics(settings, {
        partitions: 1,
        config: {
          'cleanup.policy': 'compact',
          'segment.ms': '100',
          'segment.bytes': String(1024 ** 2),
          'min.cleanable.dirty.ratio': '0.01',
        },
      })
      // Each writer has its own sequence numbers, so the last batch of each is kept, even if it is empty. The large
      // values keep the cleaner from joining the segments, so that the empty batch ends one.
      const appendAlone = async (...records: [key: string, value: Buffer][]) => {
        const writer = await openWriter({ ...settings, compression: 'none' })
        await writer.append(
          records.map(([key, value]) => ({ topic: 'campaigns', key: Buffer.from(key), value })),
        )
        await writer.close()
      }
      await appendAlone(['first', randomBytes(650_000)])
      await appendAlone(['again', Buffer.from('1')], ['again', Buffer.from('2')], ['again', Buffer.from('3')])
      await rolled()
      await appendAlone(['again', Buffer.from('4')], ['large', randomBytes(600_000)])
      await rolled()
      await appendAlone(['last', Buffer.from('5')])
      const name = topicName(settings, 'campaigns')
      await until(async () => (await offsetsSeenByKcat(name)).join() === '0,4,5,6')

      const reader = await openReader(settings)
      const deliveries = await readDeliveries(reader, 4)
      const offsets = deliveries.flatMap(({ records }) => records).map(({ offset }) => offset)
      expect(offsets).toEqual([0, 4, 5, 6])
      await commitAll(reader, deliveries)
      expect((await reader.lag()).find(({ topic }) => topic === 'campaigns')).toMatchObject({
        committed: 7,
        end: 7,
      })
    })

    test('of a transaction that was aborted are left out, and the others not', async () => {
      await makeTopics(settings, { partitions: 1 })
      await inTransactions([true, false, true])
      const reader = await openReader(settings)
      const deliveries = await readDeliveries(reader, 2)
      expect(numbersOf(deliveries.flatMap(({ records }) => records))).toEqual([0, 2])
      await commitAll(reader, deliveries)
      await inTransactions([false])
      // The group itself gets behind the last marker too, although no record comes: a purge waits for that.
      await until(async () => {
        const { positions, assignment } = await reader.poll({ ...generous, waitMsMax: 50 }, never)
        await reader.commit(assignment, positions)
        return (await reader.lag()).every(({ committed, end }) => committed === end)
      })
      const own = { ...settings, ...groupOf(settings) }
      const inspector = await openKafkaInspector(own, { logger: silent, positions: () => committedBy(own) })
      onTestFinished(() => inspector.close())
      expect((await inspector.group()).lag.find(at => at.topic === 'pledges')).toMatchObject({
        committed: 8,
        end: 8,
      })
    })

    test('of transactions are read, each once, by a reader that begins anew again and again beside those that are aborted', async () => {
      await makeTopics(settings, { partitions: 1 })
      const reader = await openReader(settings)
      const areKept = range(0, 32).map(index => index % 4 === 0)
      let isWritten = false
      const writing = inTransactions(areKept).finally(() => {
        isWritten = true
      })
      const isRead = async () =>
        isWritten && (await reader.lag()).every(({ committed, end }) => committed === end)
      const seen: number[] = []
      let deliveries = 0
      while (!(await isRead())) {
        const { records, positions, assignment } = await reader.poll({ ...generous, waitMsMax: 200 }, never)
        if (records.length > 0) deliveries++
        // It is not committed, so it is read again.
        if (records.length > 0 && deliveries % 2 === 1) await reader.restart()
        else {
          seen.push(...numbersOf(records))
          await reader.commit(assignment, positions)
        }
      }
      await writing
      expect(seen).toEqual([0, 4, 8, 12, 16, 20, 24, 28])
    })

    /** Each is one record with its number, which is kept or aborted. */
    async function inTransactions(areKept: readonly boolean[]): Promise<void> {
      const producer = createKafka(settings, silent).producer({
        transactionalId: settings.topicPrefix,
        maxInFlightRequests: 1,
        idempotent: true,
      })
      await producer.connect()
      try {
        for (const [index, isKept] of areKept.entries()) {
          const transaction = await producer.transaction()
          const messages = [{ key: 'k', value: String(index) }]
          await transaction.send({ topic: topicName(settings, 'pledges'), messages })
          await (isKept ? transaction.commit() : transaction.abort())
        }
      } finally {
        await producer.disconnect()
      }
    }

    async function rolled(): Promise<void> {
      // A segment is rolled by the next record that comes 100 ms after its first.
      const first = Date.now()
      await until(() => Date.now() > first + 110)
    }

    async function offsetsSeenByKcat(name: string): Promise<string[]> {
      const output = await kcat(['-b', address(), '-C', '-t', name, '-e', '-q', '-f', '%o\n'])
      return output.trimEnd().split('\n')
    }
  })

  test('holds of a backlog no more than the bound of bytes, and of pledges so little that a new key comes through; and reads it to its end', async () => {
    const bufferBytesMax = 6 * 1024 ** 2
    await makeTopics(settings)
    const writer = await openWriter({ ...settings, compression: 'none' })
    await writer.append(numbered(0, 400, 100_000))
    const reader = await openReader({ ...settings, bufferBytesMax })
    await until(() => reader.buffered().bytes >= bufferBytesMax / 3)
    await writer.append([{ topic: 'api-keys', key: Buffer.from('pv_live_1'), value: Buffer.from('key') }])
    const seen: number[] = []
    let beforeKey = Number.POSITIVE_INFINITY
    let most = 0
    while (seen.length < 400) {
      const { records } = await reader.poll({ ...generous, recordsMax: 7 }, never)
      if (records.some(({ topic }) => topic === 'api-keys')) beforeKey = seen.length
      seen.push(...numbersOf(records.filter(({ topic }) => topic === 'pledges')))
      // Time for the fetches to outrun a slow caller.
      await reader.lag()
      most = Math.max(most, reader.buffered().bytes)
    }
    expect(beforeKey).toBeLessThan(200)
    expect(seen.toSorted((a, b) => a - b)).toEqual(range(0, 400))
    // A topic has a third of the buffer, and what one fetch brings on top.
    expect(most).toBeLessThanOrEqual(bufferBytesMax / 3 + fetchBytesMax)
  })
}

const partitions = 6
// Of all lengths modulo four, and with characters of one to four bytes.
const keys = [
  ...Array.from({ length: 24 }, (_, n) => `c_${n}/p_${'x'.repeat(n)}${n}`),
  ...['c_8842', 'a', 'é', '日本/p_1', '🎈', 'ключ/п_1', '\u{ffff}'],
]

export function describePartitions({ address, openReader, openWriter }: KafkaSuite): void {
  test("is the same for our writer and for librdkafka with partitioner=murmur2_random, and another one for librdkafka's default: a reader marks exactly these records", async context => {
    needs(context, kcatProgram)
    const settings = settingsFor(address())
    await makeTopics(settings, { partitions })
    const writer = await openWriter(settings)
    await writer.append(keys.map(key => ({ topic: 'pledges', key: Buffer.from(key), value: null })))
    // kcat publishes through librdkafka.
    const publish = ['-P', '-b', address(), '-t', topicName(settings, 'pledges'), '-K', '\t']
    const lines = keys.map(key => `${key}\tfrom kcat\n`).join('')
    await kcat([...publish, '-X', 'partitioner=murmur2_random'], lines)
    await kcat(publish, lines)
    const records = await readRecords(await openReader(settings), 3 * keys.length)
    const placed = records.map(record => ({ ...record, key: Buffer.from(record.key ?? []).toString() }))
    const isRight = ({ key, partition }: { key: string; partition: number }) =>
      partition === partitionOf(Buffer.from(key), partitions)
    for (const key of keys) {
      const right = placed.filter(record => record.key === key && isRight(record))
      expect(right.length, key).toBeGreaterThanOrEqual(2)
    }
    const elsewhere = placed.filter(record => !isRight(record))
    expect(elsewhere.length).toBeGreaterThan(keys.length / 2)
    expect(placed.filter(({ isMisplaced }) => isMisplaced)).toEqual(elsewhere)
  })
}
