/** The event log's promises, on real Kafka brokers of both lines that are in use. */
import { describe, expect, test, vi } from 'vitest'
import { type KafkaReader, openKafkaReader } from '../../../services/log/kafka/reader.ts'
import { partitionOf } from '../../../services/log/kafka/record.ts'
import { openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import { type FindStarts, lagRecords, SupersededAssignment } from '../../../services/log/port.ts'
import { pledges, readDeliveries, readRecords } from '../../support/events/event-log-records.ts'
import { startsAtGroup } from '../../support/kafka/suite.ts'
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

  async function openLog(): Promise<LogUnderTest & { supersede(consumer: string): Promise<KafkaReader> }> {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings, { partitions })

    function openReader(
      consumer: string,
      { clientId = settings.clientId, starts }: { clientId?: string; starts?: FindStarts | undefined } = {},
    ): Promise<KafkaReader> {
      const groupId = `${settings.topicPrefix}${consumer}`
      const all = { ...settings, clientId, groupId, sessionMs: 6_000, heartbeatMs: 100 }
      return openKafkaReader(all, { logger: silent, starts: starts ?? startsAtGroup(all) })
    }

    return {
      address: { kind: 'kafka', settings },
      openWriter: () => openKafkaWriter(settings, { logger: silent }),
      openReader: (consumer, starts) => openReader(consumer, { starts }),
      /** Makes another reader of the consumer the one that counts, and returns it. */
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
  }

  describeEventLog(`on ${service.name}`, openLog)

  test('commits nothing of an assignment that was superseded, and says so', async () => {
    const log = await openLog()
    const writer = await log.openWriter()
    await writer.append(pledges(0, 10))
    const first = await log.openReader('projector')
    const [late] = await readDeliveries(first, 10)
    const second = await log.supersede('projector')
    await expect(first.commit(late.assignment, late.positions)).rejects.toThrow(SupersededAssignment)
    expect(await readRecords(second, 10)).toHaveLength(10)
    expect(lagRecords(await second.lag())).toBe(10)
    for (const part of [writer, first, second]) await part.close()
    await log.remove()
  })
})
