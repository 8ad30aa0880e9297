/** The event log's promises, on real Kafka brokers of both lines that are in use. */
import { describe } from 'vitest'
import { openKafkaReader } from '../../../services/log/kafka/reader.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { membership, startsAtGroup } from '../../support/kafka/suite.ts'
import { makeTopics, removeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
import { kafkaServices } from '../../support/services/kafka.ts'
import { useService } from '../../support/services/test-service.ts'
import { describeEventLog, type LogUnderTest } from './event-log.conformance.ts'

const partitions = 3

describe.each(kafkaServices)('$name', service => {
  const kafka = useService(service)

  async function openLog(): Promise<LogUnderTest> {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings, { partitions })
    return {
      openWriter: () => openKafkaWriter(settings, { logger: silent }),
      openReader(consumer, starts) {
        const groupId = `${settings.topicPrefix}${consumer}`
        const all = { ...settings, groupId, ...membership }
        return openKafkaReader(all, { logger: silent, starts: starts ?? startsAtGroup(all) })
      },
      remove: () => removeTopics(settings),
    }
  }

  describeEventLog(`on ${service.name}`, openLog)
})
