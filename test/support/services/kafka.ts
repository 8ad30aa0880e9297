/** Kafkas for suites that create their own topics: the given one, or one of each supported version. */
import { setTimeout as delay } from 'node:timers/promises'
import type { GenericContainer } from 'testcontainers'
import { freePort } from '../../../services/runtime/free-port.ts'
import { kafkaImage } from '../containers/images.ts'
import { kafkaAnswers, startKafka } from '../kafka/broker.ts'
import { type KafkaVersion, kafkaRequirement, kafkaVersions } from '../kafka/jars.ts'
import { testBrokerProperties } from '../kafka/test-properties.ts'
import { inContainer } from './docker.ts'
import { atAddress, inOrder, type ServiceSource, type TestService } from './test-service.ts'

export interface TestKafka {
  /** host:port of a broker */
  address: string
  close(): Promise<void>
}

const variable = 'PLEDGEVIEW_TEST_KAFKA_BROKERS'
const port = 9092
const answerMsMax = 60_000

const given = atAddress<TestKafka>(variable, async address => ({
  address: address.split(',')[0] ?? '',
  close: async () => undefined,
}))

export const kafkaServices: readonly TestService<TestKafka>[] = process.env[variable]
  ? [inOrder('Kafka', [given])]
  : kafkaVersions.map(version =>
      inOrder(`Kafka ${version}`, [given, containerOf(version), programOf(version)]),
    )

/** The newest Kafka, or the one that is given. */
export const kafkaService: TestService<TestKafka> = newest()

function newest(): TestService<TestKafka> {
  const last = kafkaServices.at(-1)
  if (!last) throw new Error('there is no version of Kafka to test on')
  return last
}

function containerOf(version: KafkaVersion): ServiceSource<TestKafka> {
  return inContainer({
    image: kafkaImage(version),
    configure,
    async open(container) {
      const address = `${container.getHost()}:${container.getMappedPort(port)}`
      const deadline = performance.now() + answerMsMax
      while (!(await kafkaAnswers(address))) {
        if (performance.now() > deadline) throw new Error(`Kafka ${version} does not answer at ${address}`)
        await delay(100)
      }
      return { address, close: async () => undefined }
    },
  })
}

/** A broker tells its clients its own address, so its port has to be known before it starts. */
async function configure(container: GenericContainer, host: string): Promise<GenericContainer> {
  const outside = await freePort()
  const properties = {
    ...testBrokerProperties,
    'controller.quorum.voters': '1@localhost:9093',
    'inter.broker.listener.name': 'INTERNAL',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,OUTSIDE:PLAINTEXT',
    listeners: `CONTROLLER://localhost:9093,INTERNAL://localhost:9094,OUTSIDE://:${port}`,
    'advertised.listeners': `INTERNAL://localhost:9094,OUTSIDE://${host}:${outside}`,
    'log.dirs': '/var/lib/kafka/data',
  }
  const environment = Object.entries(properties).map(([name, value]) => [
    `KAFKA_${name.toUpperCase().replaceAll('.', '_')}`,
    value,
  ])
  return container
    .withEnvironment({
      ...Object.fromEntries(environment),
      CLUSTER_ID: 'AAAAAAAAAAAAAAAAAAAAAA',
      KAFKA_HEAP_OPTS: '-Xms128m -Xmx384m',
    })
    .withExposedPorts({ container: port, host: outside })
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
