/** The event log's promises, on real Kafka brokers of both lines that are in use. */
import { describe, vi } from 'vitest'
import { rejectTopicName } from '../../../services/shared/event-log/kafka/client.ts'
import { partitionOf } from '../../../services/shared/event-log/kafka/partition.ts'
import { type KafkaReader, openKafkaReader } from '../../../services/shared/event-log/kafka/reader.ts'
import { readReject } from '../../../services/shared/event-log/kafka/rejects.ts'
import { openKafkaWriter } from '../../../services/shared/event-log/kafka/writer.ts'
import type { Reject } from '../../../services/shared/event-log/port.ts'
import { makeTopics, readTopic, removeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
import { kafkaServices } from '../../support/services/kafka.ts'
import { useService } from '../../support/services/test-service.ts'
import { describeEventLog, type LogUnderTest } from './event-log.conformance.ts'

const partitions = 3
// The key that the conformance suite appends its pledges with.
const pledgePartition = partitionOf(Buffer.from('c_1'), partitions)
// Two readers share the partitions in turn, in the order of their members' names. A member's name begins with its client's: one of
// these comes before the first reader's, and the other one behind it. So one of the two gets the partition of the pledges.
const takeOvers = ['a', 'z']

describe.each(kafkaServices)('$name', service => {
  const kafka = useService(service)

  describeEventLog(`on ${service.name}`, async (): Promise<LogUnderTest> => {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings, { partitions })

    function openReader(consumer: string, clientId = settings.clientId): Promise<KafkaReader> {
      const groupId = `${settings.topicPrefix}${consumer}`
      return openKafkaReader(
        { ...settings, clientId, groupId, sessionMs: 6_000, heartbeatMs: 100 },
        { logger: silent },
      )
    }

    return {
      address: { kind: 'kafka', settings },
      openWriter: () => openKafkaWriter(settings, { logger: silent }),
      openReader: consumer => openReader(consumer),
      async supersede(consumer) {
        for (const name of takeOvers) {
          const reader = await openReader(consumer, `${name}-${settings.clientId}`)
          // On a busy machine it may have to join again first. It gets some of the partitions in any case.
          const held = await vi.waitUntil(
            async () => {
              const lag = await reader.lag()
              return lag.length > 0 && lag
            },
            { timeout: 20_000, interval: 50 },
          )
          if (held.some(({ topic, partition }) => topic === 'pledges' && partition === pledgePartition)) {
            return reader
          }
          await reader.close()
        }
        throw new Error('the partition of the pledges did not change hands')
      },
      async keptRejects() {
        const messages = await readTopic(settings, rejectTopicName(settings))
        const kept = new Map<string, Reject>()
        for (const message of messages) {
          const reject = readReject(settings, message)
          const { topic, partition, offset } = reject.record
          const name = `${topic}/${partition}/${offset}`
          if (!kept.has(name)) kept.set(name, reject)
        }
        return [...kept.values()]
      },
      appendsWhole: false,
      remove: () => removeTopics(settings),
    }
  })
})
