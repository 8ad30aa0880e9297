/** State topics while Kafka is away: bounded, and without a restart afterwards. */
import { expect, test } from 'vitest'
import { openKafkaStateTopic } from '../../../services/shared/event-log/kafka/state-topic.ts'
import { StateTopicUnavailable } from '../../../services/shared/event-log/state-topic.ts'
import { accountEvent as account, accountChange as change } from '../../support/accounts.ts'
import { startKafka } from '../../support/kafka/broker.ts'
import { kafkaRequirement, kafkaVersions } from '../../support/kafka/jars.ts'
import { makeTopics, settingsFor } from '../../support/kafka/topics.ts'
import { recordingLogger } from '../../support/recording-logger.ts'
import { useService } from '../../support/services/test-service.ts'

// The newest is enough: what is tested here is the client.
const version = kafkaVersions[kafkaVersions.length - 1] ?? '4.4.0'

const opened = useService({
  requirement: () => kafkaRequirement(version),
  async open() {
    const broker = await startKafka(version)
    return { broker, close: broker.stop }
  },
})
const broker = () => opened().broker

test('while Kafka is away, answers come from memory for a moment, then an error says so; when it is back, all goes on', {
  timeout: 300_000,
}, async () => {
  const settings = settingsFor(broker().address)
  await makeTopics(settings)
  const { logger, lines } = recordingLogger()
  const options = { behindMsMax: 1_500 }
  const topic = await openKafkaStateTopic(settings, 'accounts', { logger }, options)
  await topic.write([change('a')])
  await broker().halt()
  await expect.poll(() => topic.health().ok, { timeout: 20_000 }).toBe(false)
  await expect(topic.write([change('b')])).rejects.toThrow(StateTopicUnavailable)
  await expect(topic.get('a')).rejects.toThrow(`${settings.topicPrefix}accounts`)
  await broker().resume()
  // Only a hang takes this long: the broker has started, and waits until the cluster has forgotten the killed one.
  await expect.poll(() => topic.health().ok, { timeout: 120_000 }).toBe(true)
  expect(await topic.get('a')).toEqual(account('a'))
  await topic.write([change('c')])
  expect(await topic.get('c')).toEqual(account('c'))
  // One line says that it is away, and one that it is back, however often it was tried.
  expect(lines.filter(({ msg }) => msg === 'the topic cannot be read')).toHaveLength(1)
  expect(lines.filter(({ msg }) => msg === 'the topic is read again')).toHaveLength(1)
  await topic.close()
})
