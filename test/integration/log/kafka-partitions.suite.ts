/** Where librdkafka puts a key, compared with where our writer puts it. Java and Python: test/clients/producers.test.ts. */
import { beforeEach, expect, test } from 'vitest'
import { type KafkaSettings, topicName } from '../../../services/log/kafka/client.ts'
import { partitionOf } from '../../../services/log/kafka/record.ts'
import { readRecords } from '../../support/events/event-log-records.ts'
import { kcat, kcatProgram } from '../../support/kafka/kcat.ts'
import type { KafkaSuite } from '../../support/kafka/suite.ts'
import { makeTopics, settingsFor } from '../../support/kafka/topics.ts'
import { needs } from '../../support/runner/requirements.ts'

const partitions = 6
// Of all lengths modulo four, and with characters of one to four bytes.
const keys = [
  ...Array.from({ length: 24 }, (_, n) => `c_${n}/p_${'x'.repeat(n)}${n}`),
  ...['c_8842', 'a', 'é', '日本/p_1', '🎈', 'ключ/п_1', '\u{ffff}'],
]

export function describePartitions({ address, openReader, openWriter }: KafkaSuite): void {
  let settings: KafkaSettings
  let topic: string

  beforeEach(async () => {
    settings = settingsFor(address())
    topic = topicName(settings, 'pledges')
    await makeTopics(settings, { partitions })
  })

  /** Publishes a record under each key through kcat, so through librdkafka. */
  function publish(...options: string[]): Promise<string> {
    const lines = keys.map(key => `${key}\tfrom kcat\n`).join('')
    return kcat(['-P', '-b', address(), '-t', topic, '-K', '\t', ...options], lines)
  }

  /** What a reader of ours gets: the places of the keys, and the keys that it finds in a wrong partition. */
  async function read(count: number): Promise<{ placed: [string, number][]; misplaced: string[] }> {
    const records = await readRecords(await openReader(settings), count)
    const named = records.map(record => ({ ...record, key: Buffer.from(record.key ?? []).toString() }))
    return {
      placed: named.map(({ key, partition }) => [key, partition]),
      misplaced: named.filter(({ isMisplaced }) => isMisplaced).map(({ key }) => key),
    }
  }

  const expected = new Map(keys.map(key => [key, partitionOf(Buffer.from(key), partitions)]))

  test('is the same for our writer and for librdkafka with partitioner=murmur2_random', async context => {
    needs(context, kcatProgram)
    const writer = await openWriter(settings)
    await writer.append(keys.map(key => ({ topic: 'pledges', key: Buffer.from(key), value: null })))
    await publish('-X', 'partitioner=murmur2_random')
    const { placed, misplaced } = await read(2 * keys.length)
    for (const [key, partition] of placed) expect([key, partition]).toEqual([key, expected.get(key)])
    expect(misplaced).toEqual([])
  })

  test("is another one for librdkafka's default, and a reader marks exactly these records", async context => {
    needs(context, kcatProgram)
    await publish()
    const { placed, misplaced } = await read(keys.length)
    const elsewhere = placed.filter(([key, partition]) => partition !== expected.get(key)).map(([key]) => key)
    expect(elsewhere.length).toBeGreaterThan(keys.length / 2)
    expect(misplaced.toSorted()).toEqual(elsewhere.toSorted())
  })
}
