/**
 * Real services for the suites that only use them: ClickHouse, Kafka, Redis and a schema registry, as programs of this machine. A
 * suite that makes a service unavailable, kills it or pauses it starts its own.
 */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { apicurioRegistry, startApicurio } from './apicurio.ts'
import { startClickHouse } from './clickhouse.ts'
import { startKafka } from './kafka/broker.ts'
import { type KafkaVersion, kafkaRequirement, kafkaVersions } from './kafka/jars.ts'
import { redisProgram, startRedis, type TestRedis } from './redis.ts'
import { needs, type Requirement } from './requirements.ts'

export interface TestService<S> {
  name: string
  /** Never rejects. */
  requirement(): Promise<Requirement>
  open(): Promise<S>
}

export interface TestKafka {
  /** host:port of a broker */
  address: string
  close(): Promise<void>
}

export interface TestSchemaRegistry {
  /** The address of Confluent's API. */
  url: string
  close(): Promise<void>
}

const openMsMax = 300_000

/** One of each version that is supported. */
export const kafkaServices: readonly TestService<TestKafka>[] = kafkaVersions.map(kafkaOf)

/** The newest Kafka, for suites that create their own topics. */
export const kafkaService = kafkaOf(kafkaVersions[kafkaVersions.length - 1] as KafkaVersion)

/** For suites that only send commands, with keys of their own. */
export const redisService: TestService<TestRedis> = {
  name: 'Redis',
  requirement: async () => redisProgram,
  open: () => startRedis(),
}

/** A third-party one with Confluent's API. The schemas that tests register remain in it. */
export const schemaRegistryService: TestService<TestSchemaRegistry> = {
  name: 'Apicurio Registry',
  requirement: apicurioRegistry,
  open: startApicurio,
}

/** The server that comes with the program, for suites that create their own databases. `url` is without credentials. */
export const clickHouseService = {
  name: 'ClickHouse',
  requirement: async () => ({ isMet: true, reason: '' }),
  async open() {
    const { url, user, password, stop } = await startClickHouse()
    return { url, user, password, close: stop }
  },
}

function kafkaOf(version: KafkaVersion): TestService<TestKafka> {
  return {
    name: `Kafka ${version}`,
    requirement: () => kafkaRequirement(version),
    async open() {
      const { address, stop } = await startKafka(version)
      return { address, close: stop }
    },
  }
}

/**
 * Opens the service for the tests of the suite or file that calls it, and closes it after them. If the service is not
 * available, they are skipped with the reason. It can be used inside hooks and tests.
 */
export function useService<S extends { close(): Promise<void> }>(
  service: Pick<TestService<S>, 'requirement' | 'open'>,
): () => S {
  let requirement: Requirement
  let opened: S | undefined
  beforeAll(async () => {
    requirement = await service.requirement()
    if (requirement.isMet) opened = await service.open()
  }, openMsMax)
  beforeEach(context => needs(context, requirement))
  afterAll(() => opened?.close())
  return () => {
    if (!opened) throw new Error('the service is not open')
    return opened
  }
}
