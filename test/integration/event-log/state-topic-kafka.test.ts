/** State topics on Kafka: the promises on brokers of both lines, and what happens while the cluster is away. */
import { describe, expect, test } from 'vitest'
import { createKafka, topicName } from '../../../services/shared/event-log/kafka/client.ts'
import { openKafkaStateTopic } from '../../../services/shared/event-log/kafka/state-topic.ts'
import { createTopics } from '../../../services/shared/event-log/kafka/topics.ts'
import { type StateTopic, StateTopicUnavailable } from '../../../services/shared/event-log/state-topic.ts'
import { describeKafkaBroker } from '../../support/kafka/suite.ts'
import { makeTopics, removeTopics, settingsFor, silent, withAdmin } from '../../support/kafka/topics.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { kafkaServices } from '../../support/services/kafka.ts'
import { useService } from '../../support/services/test-service.ts'
import { account, change, describeStateTopic } from './state-topic.conformance.ts'

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

  test('reads no group into being, and needs no right on groups', async () => {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings)
    const before = await withAdmin(settings, admin => admin.listGroups())
    const topic = await openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await topic.write([change('a')])
    expect(await withAdmin(settings, admin => admin.listGroups())).toEqual(before)
    await topic.close()
    await removeTopics(settings)
  })

  test('says at once which topic is missing, and which command makes it', async () => {
    const settings = settingsFor(kafka().address)
    const opening = openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await expect(opening).rejects.toThrow(`${settings.topicPrefix}accounts`)
    await expect(openKafkaStateTopic(settings, 'accounts', { logger: silent })).rejects.toThrow('migrate')
  })

  test('begins again when the topic was made anew', async () => {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings)
    const topic = await openKafkaStateTopic(settings, 'accounts', { logger: silent })
    await topic.write([change('a'), change('b'), change('c')])
    await removeTopics(settings)
    await expect
      .poll(() =>
        withAdmin(settings, async admin =>
          (await admin.listTopics()).includes(topicName(settings, 'accounts')),
        ),
      )
      .toBe(false)
    await withAdmin(settings, admin =>
      createTopics(admin, [{ topic: topicName(settings, 'accounts'), numPartitions: 3 }]),
    )
    await expect
      .poll(async () => (await untilAvailable(topic)).map(({ key }) => key), { timeout: 20_000 })
      .toEqual([])
    await topic.write([change('d')])
    expect(await topic.get('d')).toEqual(account('d'))
    await topic.close()
    await removeTopics(settings)
  })
})

describeKafkaBroker('a state topic while the cluster is away', suite => {
  test('answers from memory for a moment, then says that it cannot, and goes on when the cluster is back', async () => {
    const settings = { ...settingsFor(suite.address()), brokers: [suite.broker().address] }
    await makeTopics(settings)
    const { logger, lines } = recordingLogger()
    const options = { behindMsMax: 1_500, waitMsMax: 3_000 }
    const topic = await openKafkaStateTopic(settings, 'accounts', { logger }, options)
    await topic.write([change('a')])
    await suite.broker().halt()
    await expect.poll(() => topic.health().ok, { timeout: 20_000 }).toBe(false)
    await expect(topic.write([change('b')])).rejects.toThrow(StateTopicUnavailable)
    await expect(topic.get('a')).rejects.toThrow(`${settings.topicPrefix}accounts`)
    await suite.broker().resume()
    await expect.poll(() => topic.health().ok, { timeout: 60_000 }).toBe(true)
    expect(await topic.get('a')).toEqual(account('a'))
    await topic.write([change('c')])
    expect(await topic.get('c')).toEqual(account('c'))
    // One line says that it is away, and one that it is back, however often it was tried.
    expect(lines.filter(({ msg }) => msg === 'the topic cannot be read')).toHaveLength(1)
    expect(lines.filter(({ msg }) => msg === 'the topic is read again')).toHaveLength(1)
    await topic.close()
  })
})

async function untilAvailable(topic: StateTopic<'accounts'>) {
  return topic.all().catch((error: unknown) => {
    if (error instanceof StateTopicUnavailable) return [{ key: 'unavailable' }]
    throw error
  })
}
