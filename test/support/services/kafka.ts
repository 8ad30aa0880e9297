/** Kafkas for suites that create their own topics: the given one, or one of each supported version. */
import { startKafka } from '../kafka/broker.ts'
import { type KafkaVersion, kafkaRequirement, kafkaVersions } from '../kafka/jars.ts'
import { atAddress, inOrder, type ServiceSource, type TestService } from './test-service.ts'

export interface TestKafka {
  /** host:port of a broker */
  address: string
  close(): Promise<void>
}

const variable = 'PLEDGEVIEW_TEST_KAFKA_BROKERS'

const given = atAddress<TestKafka>(variable, async address => ({
  address: address.split(',')[0] ?? '',
  close: async () => undefined,
}))

export const kafkaServices: readonly TestService<TestKafka>[] = process.env[variable]
  ? [inOrder('Kafka', [given])]
  : kafkaVersions.map(version => inOrder(`Kafka ${version}`, [given, programOf(version)]))

/** The newest Kafka, or the one that is given. */
export const kafkaService: TestService<TestKafka> = newest()

function newest(): TestService<TestKafka> {
  const last = kafkaServices.at(-1)
  if (!last) throw new Error('there is no version of Kafka to test on')
  return last
}

function programOf(version: KafkaVersion): ServiceSource<TestKafka> {
  return {
    requirement: async () => ({
      ...(await kafkaRequirement(version)),
      source: 'from its jars, on the Java of this machine',
    }),
    async open() {
      const broker = await startKafka(version)
      return { address: broker.address, close: broker.stop }
    },
  }
}
