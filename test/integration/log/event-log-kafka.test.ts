/** The event log's promises, on real Kafka brokers of both lines that are in use. */
import { describe, vi } from 'vitest'
import { type KafkaReader, openKafkaReader } from '../../../services/log/kafka/reader.ts'
import { partitionOf } from '../../../services/log/kafka/record.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { FindStarts } from '../../../services/log/port.ts'
import { makeTopics, removeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
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

    function openReader(
      consumer: string,
      { clientId = settings.clientId, starts }: { clientId?: string; starts?: FindStarts | undefined } = {},
    ): Promise<KafkaReader> {
      const groupId = `${settings.topicPrefix}${consumer}`
      return openKafkaReader(
        { ...settings, clientId, groupId, sessionMs: 6_000, heartbeatMs: 100 },
        { logger: silent, ...(starts && { starts }) },
      )
    }

    return {
      address: { kind: 'kafka', settings },
      openWriter: () => openKafkaWriter(settings, { logger: silent }),
      openReader: (consumer, starts) => openReader(consumer, { starts }),
      async supersede(consumer) {
        for (const name of takeOvers) {
          const reader = await openReader(consumer, { clientId: `${name}-${settings.clientId}` })
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
      appendsWhole: false,
      remove: () => removeTopics(settings),
    }
  })
})
