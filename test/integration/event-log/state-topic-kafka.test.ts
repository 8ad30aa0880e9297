/** State topics on Kafka: the promises, on brokers of both lines. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createKafka, topicName } from '../../../services/shared/event-log/kafka/client.ts'
import { rollStateTopics } from '../../../services/shared/event-log/kafka/roll-segments.ts'
import { openKafkaStateTopic } from '../../../services/shared/event-log/kafka/state-topic.ts'
import { createTopics } from '../../../services/shared/event-log/kafka/topics.ts'
import { type StateTopic, StateTopicUnavailable } from '../../../services/shared/event-log/state-topic.ts'
import { accountEvent as account, accountChange as change, noticeChange } from '../../support/accounts.ts'
import {
  makeTopics,
  readTopic,
  removeTopics,
  settingsFor,
  silent,
  withAdmin,
} from '../../support/kafka/topics.ts'
import { kafkaServices } from '../../support/services/kafka.ts'
import { useService } from '../../support/services/test-service.ts'
import { describeStateTopic } from './state-topic.conformance.ts'

describe.each(kafkaServices)('$name', service => {
  const kafka = useService(service)

  describeStateTopic(`on ${service.name}`, async () => {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings, { partitions: 3 })
    const producer = createKafka(settings, silent).producer()
    await producer.connect()
    return {
      open: (logger, options) => openKafkaStateTopic(settings, 'accounts', { logger }, options),
      async appendRaw(key, value) {
        const message = { key: key && Buffer.from(key), value: value && Buffer.from(value) }
        await producer.send({ topic: topicName(settings, 'accounts'), messages: [message] })
      },
      // The brokers do it, in their own time; what is left out then, a later record replaces.
      compact: async () => undefined,
      async remove() {
        await producer.disconnect()
        await removeTopics(settings)
      },
    }
  })

  test('joins no consumer group', async () => {
    const settings = { ...settingsFor(kafka().address), clientId: randomUUID() }
    await makeTopics(settings)
    const topic = await openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await topic.write([change('a')])
    const clients = await withAdmin(settings, async admin => {
      const { groups } = await admin.listGroups()
      const described = await admin.describeGroups(groups.map(({ groupId }) => groupId))
      return described.groups.flatMap(({ members }) => members.map(({ clientId }) => clientId))
    })
    expect(clients).not.toContain(settings.clientId)
    await topic.close()
    await removeTopics(settings)
  })

  test('says at once which topic is missing, and which command makes it', async () => {
    const settings = settingsFor(kafka().address)
    const opening = openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await expect(opening).rejects.toThrow(`${settings.topicPrefix}accounts`)
    await expect(openKafkaStateTopic(settings, 'accounts', { logger: silent })).rejects.toThrow('migrate')
  })

  test('rolled for a purge, topics that nobody writes to lose what was deleted, and keep what counts', async () => {
    const settings = settingsFor(kafka().address)
    const config = { 'cleanup.policy': 'compact', 'max.compaction.lag.ms': '1000' }
    await makeTopics(settings, { partitions: 2, config })
    const topic = await openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await topic.write([change('a', 'gone@one.example'), change('b', 'kept@one.example')])
    await topic.write([{ key: 'a', state: null }])
    const name = topicName(settings, 'accounts')
    await expect
      .poll(
        async () => {
          await rollStateTopics(settings, { logger: silent })
          return textOf(await readTopic(settings, name))
        },
        { timeout: 100_000, interval: 1_100 },
      )
      .not.toContain('gone@one.example')
    expect(textOf(await readTopic(settings, name))).toContain('kept@one.example')
    expect(await topic.all()).toEqual([{ key: 'b', state: account('b', 'kept@one.example') }])
    const later = await openKafkaStateTopic(settings, 'accounts', { logger: silent })
    expect(await later.all()).toEqual([{ key: 'b', state: account('b', 'kept@one.example') }])
    await topic.close()
    await later.close()
    await removeTopics(settings)
  })

  test('keeps notices beside accounts', async () => {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings)
    const topic = await openKafkaStateTopic(settings, 'notices', { logger: silent })
    await topic.write([noticeChange('n')])
    expect(await topic.get('n')).toEqual(noticeChange('n').state)
    await topic.close()
    await removeTopics(settings)
  })

  test('begins again when the topic was made anew', async () => {
    const settings = settingsFor(kafka().address)
    const name = topicName(settings, 'accounts')
    const make = () => withAdmin(settings, admin => createTopics(admin, [{ topic: name, numPartitions: 1 }]))
    const drop = () => withAdmin(settings, admin => admin.deleteTopics({ topics: [name] }))
    await make()
    const topic = await openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await topic.write([change('a'), change('b'), change('c')])
    await drop()
    await expect
      .poll(() => withAdmin(settings, admin => admin.listTopics()), { timeout: 60_000 })
      .not.toContain(name)
    await make()
    await expect.poll(async () => keysOf(topic), { timeout: 60_000 }).toEqual([])
    await topic.write([change('d')])
    expect(await topic.get('d')).toEqual(account('d'))
    await topic.close()
    await drop()
  })
})

function textOf(messages: readonly { value: Buffer | null }[]): string {
  return messages.map(({ value }) => value?.toString('latin1') ?? '').join('\n')
}

async function keysOf(topic: StateTopic<'accounts'>): Promise<string[]> {
  try {
    return (await topic.all()).map(({ key }) => key)
  } catch (error) {
    if (error instanceof StateTopicUnavailable) return ['unavailable']
    throw error
  }
}
