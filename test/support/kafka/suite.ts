/** Suites on the newest Kafka, which close what they open. What every Kafka promises is in event-log.conformance.ts. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe } from 'vitest'
import { isOutage, type KafkaSettings } from '../../../services/log/kafka/client.ts'
import { readCommitted } from '../../../services/log/kafka/offsets.ts'
import { type KafkaReaderSettings, openKafkaReader } from '../../../services/log/kafka/reader.ts'
import { type KafkaWriterSettings, openKafkaWriter } from '../../../services/log/kafka/writer.ts'
import type { Delivery, EventReader, FindStarts, LogRecord, NewRecord } from '../../../services/log/port.ts'
import { retry } from '../../../services/runtime/async/retry.ts'
import { kafkaService } from '../services/kafka.ts'
import { useService } from '../services/test-service.ts'
import { type KafkaBroker, startKafka } from './broker.ts'
import { kafkaRequirement, newestKafka } from './jars.ts'
import { silent, withAdmin } from './topics.ts'

export interface KafkaSuite extends ReturnType<typeof openers> {
  /** host:port; available inside hooks and tests. */
  address(): string
}

interface KafkaBrokerSuite extends KafkaSuite {
  /** The suite's own broker, which tests may stop and reach through any listener. */
  broker(): KafkaBroker
}

/** Describes a suite. What a test opens through it is closed after the test. */
export function describeKafka(name: string, define: (suite: KafkaSuite) => void): void {
  describe(`${name} on ${kafkaService.name}`, () => {
    const kafka = useService(kafkaService)
    define({ address: () => kafka().address, ...openers() })
  })
}

/** The same with a local broker: for suites that stop it, hold it, or use its other listeners. */
export function describeKafkaBroker(name: string, define: (suite: KafkaBrokerSuite) => void): void {
  describe(`${name} on Kafka ${newestKafka}`, () => {
    const opened = useService({
      requirement: () => kafkaRequirement(newestKafka),
      async open() {
        const broker = await startKafka(newestKafka)
        return { broker, close: broker.stop }
      },
    })
    const broker = () => opened().broker
    define({ broker, address: () => broker().address, ...openers() })
  })
}

/** Opens writers and readers, and closes them after each test. */
function openers() {
  let opened: { close(): Promise<void> }[] = []

  afterEach(async () => {
    await Promise.all(opened.map(part => part.close()))
    opened = []
  })

  function kept<T extends { close(): Promise<void> }>(part: T): T {
    opened.push(part)
    return part
  }

  return {
    openWriter: async (settings: KafkaWriterSettings) =>
      kept(await openKafkaWriter(settings, { logger: silent })),
    /** A reader of the group `projector`, with short timeouts by default. Default of `starts`: what the group has committed. */
    openReader: async (settings: KafkaSettings & Partial<KafkaReaderSettings>, starts?: FindStarts) => {
      const all = { ...membership, ...groupOf(settings), ...settings }
      return kept(await openKafkaReader(all, { logger: silent, starts: starts ?? startsAtGroup(all) }))
    },
  }
}

/** The consumer group of readers with these settings. */
export function groupOf({ topicPrefix }: { topicPrefix: string }): { groupId: string } {
  return { groupId: `${topicPrefix}projector` }
}

/** Behind what the group has committed, by `partitionName`. */
export async function committedBy({ groupId, ...settings }: KafkaSettings & { groupId: string }) {
  const read = () => withAdmin(settings, admin => readCommitted({ admin, names: settings }, groupId))
  const committed = await retry(read, { isRetryable: isOutage, attemptsMax: 20, pauseMsMin: 250 })
  return new Map([...committed].map(([name, next]) => [name, { next, lastAt: 0 }]))
}

/** Begins behind what the group has committed, as a projector begins behind what its tables have. */
export function startsAtGroup(settings: KafkaSettings & { groupId: string }): FindStarts {
  return {
    find: () => committedBy(settings),
    beginAnew() {},
  }
}

/** How soon the group removes a silent reader of a test, ms. Less would remove readers of a busy machine, too. */
export const sessionMs = 6_000
/** The bounds of a reader of a test. */
export const membership = { sessionMs, heartbeatMs: 100, outageMsMax: 120_000 }

/** Pledges with many keys and these numbers as values. */
export function numbered(from: number, count: number, bytes = 0): NewRecord[] {
  return Array.from({ length: count }, (_, index) => ({
    topic: 'pledges',
    key: Buffer.from(`c_1/p_${from + index}`),
    value: Buffer.from(String(from + index).padEnd(bytes)),
  }))
}

export function numbersOf(records: readonly LogRecord[]): number[] {
  return records.map(({ value }) => Number(Buffer.from(value ?? []).toString())).toSorted((a, b) => a - b)
}

export async function commitAll(reader: EventReader, deliveries: readonly Delivery[]): Promise<void> {
  for (const { assignment, positions } of deliveries) await reader.commit(assignment, positions)
}

/** Waits until a condition holds, limited by the test's own timeout. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(20)
}
