/** What operators see of the event log on Kafka, and what a rebuild and a purge do with it. */

import { expect, test } from 'vitest'
import { isOutage, topicName } from '../../../services/log/kafka/client.ts'
import { openKafkaHistory } from '../../../services/log/kafka/history.ts'
import { type KafkaInspector, openKafkaInspector } from '../../../services/log/kafka/inspector.ts'
import { partitionOf } from '../../../services/log/kafka/record.ts'
import { createTopics, rollPortalTopics } from '../../../services/log/kafka/topics.ts'
import { lagRecords } from '../../../services/log/port.ts'
import { accountRecord } from '../../support/events/accounts.ts'
import { readDeliveries } from '../../support/events/event-log-records.ts'
import { startsAt } from '../../support/events/starts.ts'
import {
  commitAll,
  committedBy,
  groupOf,
  type KafkaSuite,
  membership,
  numbered,
} from '../../support/kafka/suite.ts'
import { makeTopics, namesOf, readTopic, settingsFor, silent, withAdmin } from '../../support/kafka/topics.ts'

export function describeTools({ address, openReader, openWriter }: KafkaSuite): void {
  test('the inspector sees that the group lags by what is not committed, in every partition', async () => {
    const settings = settingsFor(address())
    await makeTopics(settings)
    await (await openWriter(settings)).append(numbered(0, 40))

    async function inspect<T>(work: (inspector: KafkaInspector) => Promise<T>): Promise<T> {
      const own = { ...settings, ...groupOf(settings) }
      const inspector = await openKafkaInspector(own, { logger: silent, positions: () => committedBy(own) })
      return work(inspector).finally(() => inspector.close())
    }

    const before = await inspect(inspector => inspector.group())
    expect(before.members).toBe(0)
    expect(before.lag).toHaveLength(15)
    expect(lagRecords(before.lag)).toBe(40)
    const reader = await openReader(settings)
    await commitAll(reader, await readDeliveries(reader, 40))
    const after = await inspect(inspector => inspector.group())
    expect(after.members).toBe(1)
    expect(lagRecords(after.lag)).toBe(0)
    // Offsets of another cluster are other records.
    expect(reader.log).toBe((await inspect(inspector => inspector.log())).log)
  })

  // kafkajs would try again for minutes: the topic may be just being made.
  test('a missing topic is told at once, with the way on, and is no outage', async () => {
    const settings = settingsFor(address())
    const others = namesOf(settings).filter(name => name !== topicName(settings, 'notices'))
    await withAdmin(settings, admin =>
      createTopics(
        admin,
        others.map(topic => ({ topic })),
      ),
    )
    const own = { ...settings, ...groupOf(settings) }
    const inspect = () => openKafkaInspector(own, { logger: silent, positions: async () => new Map() })
    for (const open of [inspect, () => openReader(settings)]) {
      const failure = await open().catch(error => error)
      const name = topicName(settings, 'notices')
      expect(failure.message).toContain(`does not have the topics ${name}: run pledgeview migrate. If it had`)
      expect(isOutage(failure)).toBe(false)
    }
  }, 15_000)

  test('the history ends with all partitions, also while another member of the group holds some of them, and knows what the projectors remember', async () => {
    const settings = { ...settingsFor(address()), ...membership }
    const own = { ...settings, ...groupOf(settings) }
    await makeTopics(settings)
    await (await openWriter(settings)).append(numbered(0, 30))
    const history = await openKafkaHistory(own, { logger: silent })
    const replay = await history.open('shared', startsAt({}))
    const all = await replay.lag()
    const other = await openReader({ ...settings, groupId: `${own.groupId}-shared` } as typeof settings)
    await expect.poll(async () => (await replay.lag()).length, { timeout: 60_000 }).toBeLessThan(all.length)
    const places = (positions: readonly { topic: string; partition: number }[]) =>
      positions.map(({ topic, partition }) => `${topic}/${partition}`).toSorted()
    const ends = await history.ends()
    expect(places(ends)).toEqual(places(all))
    expect(ends.reduce((sum, { next }) => sum + next, 0)).toBe(30)
    expect(await history.remembered()).toEqual({ watermark: 0, shown: 0 })
    await (await openReader(settings)).rememberWatermark(5_000, 4_000)
    expect(await history.remembered()).toEqual({ watermark: 5_000, shown: 4_000 })
    await other.close()
    await replay.close()
    await history.close()
  }, 120_000)

  test('rolled for a purge, topics that nobody writes to lose what was deleted, and keep the deletion', async () => {
    const settings = settingsFor(address())
    const config = { 'cleanup.policy': 'compact', 'max.compaction.lag.ms': '1000' }
    await makeTopics(settings, { partitions: 2, config })
    const writer = await openWriter(settings)
    await writer.append([accountRecord('a', 'gone@one.example'), accountRecord('b', 'kept@one.example')])
    await writer.append([accountRecord('a', '')])
    const messages = () => readTopic(settings, topicName(settings, 'accounts'))
    const texts = async () =>
      (await messages()).map(({ value }) => value?.toString('latin1') ?? '').join('\n')
    const rolled = async () => {
      await rollPortalTopics(settings, { logger: silent })
      return texts()
    }
    await expect.poll(rolled, { timeout: 100_000, interval: 1_100 }).not.toContain('gone@one.example')
    expect(await texts()).toContain('kept@one.example')
    expect((await messages()).filter(({ key }) => `${key}` === 'a')).toHaveLength(1)
    // Otherwise it would be said that a producer writes to the wrong partition.
    for (const { key, partition } of await messages()) expect(partitionOf(key as Buffer, 2)).toBe(partition)
  }, 120_000)
}
