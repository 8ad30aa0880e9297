/** The portal's topics get few records, and brokers compact only what is followed by more. A purge sees to it. */
import { expect, test } from 'vitest'
import { topicName } from '../../../services/log/kafka/client.ts'
import { rollPortalTopics } from '../../../services/log/kafka/roll-segments.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { accountRecord } from '../../support/accounts.ts'
import { makeTopics, readTopic, removeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
import { kafkaService } from '../../support/services/kafka.ts'
import { useService } from '../../support/services/test-service.ts'

const kafka = useService(kafkaService)

test('rolled for a purge, topics that nobody writes to lose what was deleted, and keep the deletion', async () => {
  const settings = settingsFor(kafka().address)
  const config = { 'cleanup.policy': 'compact', 'max.compaction.lag.ms': '1000' }
  await makeTopics(settings, { partitions: 2, config })
  const writer = await openKafkaWriter(settings, { logger: silent })
  await writer.append([accountRecord('a', 'gone@one.example'), accountRecord('b', 'kept@one.example')])
  await writer.append([accountRecord('a', '')])
  await writer.close()
  const messages = () => readTopic(settings, topicName(settings, 'accounts'))
  await expect
    .poll(
      async () => {
        await rollPortalTopics(settings, { logger: silent })
        return (await messages()).map(({ value }) => value?.toString('latin1') ?? '').join('\n')
      },
      { timeout: 100_000, interval: 1_100 },
    )
    .not.toContain('gone@one.example')
  const left = await messages()
  expect(left.map(({ value }) => value?.toString('latin1') ?? '').join('\n')).toContain('kept@one.example')
  expect(left.filter(({ key }) => `${key}` === 'a')).toHaveLength(1)
  await removeTopics(settings)
}, 120_000)
