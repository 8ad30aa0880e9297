/** The suites that share one broker of the newest Kafka. What every Kafka promises is in event-log.conformance.ts. */
import { describe } from 'vitest'
import { describeKafka } from '../../support/kafka/suite.ts'
import { describePartitions, describeRecords } from './kafka-records.suite.ts'
import { describeStarts } from './kafka-starts.suite.ts'
import { describeTools } from './kafka-tools.suite.ts'
import { describeUnreadable } from './kafka-unreadable.suite.ts'

describeKafka('the event log', suite => {
  describe('delivers records', () => describeRecords(suite))
  describe('a reader that is told where to begin', () => describeStarts(suite))
  describe('records that cannot be read', () => describeUnreadable(suite))
  describe('the partition of a key', () => describePartitions(suite))
  describe('the tools of operators', () => describeTools(suite))
})
