/** The services of the distributed form for one suite, on free ports of this machine: Kafka, ClickHouse, Redis, a registry. */
import { tmpdir } from 'node:os'
import { type ClickHouse, startClickHouse } from '../clickhouse/clickhouse.ts'
import { type ShardServers, startShards } from '../clickhouse/shards.ts'
import { type KafkaBroker, startKafka } from '../kafka/broker.ts'
import { type KafkaVersion, kafkaRequirement } from '../kafka/jars.ts'
import { killedOften } from '../kafka/test-properties.ts'
import type { Requirement } from '../runner/requirements.ts'
import { type Apicurio, apicurioRegistry, startApicurio } from '../servers/apicurio.ts'
import { type RedisProcess, redisProgram, startRedis } from '../servers/redis.ts'
import type { Addresses } from './deployment.ts'

/** Services that only this run uses, on free ports. A test may pause, kill and restart them. */
export interface LocalServices {
  addresses: Required<Pick<Addresses, 'kafka' | 'clickHouse' | 'redis'>> & Addresses
  kafka: KafkaBroker
  /** On a cluster, the first server. */
  clickHouse: ClickHouse
  shards: ShardServers | undefined
  redis: RedisProcess
  schemaRegistry: Apicurio | undefined
  stop(): Promise<void>
}

export interface LocalServiceOptions {
  kafkaVersion?: KafkaVersion
  /** Default: no registry. Then the schema ids are the fixed ones. */
  withSchemaRegistry?: boolean
  /** Makes ClickHouse a cluster of this many servers, each of which is a shard. Default: one server, and no cluster. */
  shards?: number | undefined
  /** Called before each service is started, with its description. */
  onProgress?: (text: string) => void
}

export const newestKafka: KafkaVersion = '4.4.0'

/** Options of a ClickHouse server that may write backups below the directory for temporary files. */
export const withBackups = {
  more: { backups: { allowed_path: tmpdir(), allow_concurrent_backups: 'false' } },
}

/** Whether everything that `startLocalServices` needs is installed. Downloads what has to be downloaded first. */
export async function localServices({
  kafkaVersion = newestKafka,
  withSchemaRegistry = false,
}: LocalServiceOptions = {}): Promise<Requirement> {
  const all = [
    redisProgram,
    await kafkaRequirement(kafkaVersion),
    ...(withSchemaRegistry ? [await apicurioRegistry()] : []),
  ]
  return all.find(requirement => !requirement.isMet) ?? { isMet: true, reason: '' }
}

/** Starts them all at once. If one does not start, it stops the others and rejects. */
export async function startLocalServices({
  kafkaVersion = newestKafka,
  withSchemaRegistry = false,
  shards: shardCount,
  onProgress = () => {},
}: LocalServiceOptions = {}): Promise<LocalServices> {
  const starting: Promise<unknown>[] = []
  const stops: (() => Promise<void>)[] = []
  function kept<T>(name: string, start: () => Promise<T>, stop: (service: T) => Promise<void>): Promise<T> {
    onProgress(`starting ${name}`)
    const started = start().then(service => {
      stops.push(() => stop(service))
      return service
    })
    starting.push(started)
    return started
  }
  const stop = async () => void (await Promise.all(stops.map(stopOne => stopOne())))
  try {
    const [kafka, shards, single, redis, schemaRegistry] = await Promise.all([
      kept(
        `Kafka ${kafkaVersion}`,
        () => startKafka(kafkaVersion, killedOften),
        broker => broker.stop(),
      ),
      shardCount === undefined
        ? undefined
        : kept(
            `ClickHouse, ${shardCount} shards`,
            () => startShards(shardCount, { hasLinks: true }),
            all => all.stop(),
          ),
      shardCount === undefined
        ? kept(
            'ClickHouse',
            () => startClickHouse(withBackups),
            server => server.stop(),
          )
        : undefined,
      kept(
        'Redis',
        () => startRedis(),
        server => server.close(),
      ),
      withSchemaRegistry
        ? kept(
            'the schema registry',
            () => startApicurio(),
            registry => registry.close(),
          )
        : undefined,
    ])
    const clickHouse = shards?.servers[0] ?? single
    if (!clickHouse) throw new Error('a cluster has at least one server')
    return {
      addresses: {
        kafka: kafka.address,
        clickHouse,
        ...(shards && { cluster: shards.environment }),
        redis: redis.url,
        ...(schemaRegistry && { schemaRegistry: schemaRegistry.url }),
      },
      kafka,
      clickHouse,
      shards,
      redis,
      schemaRegistry,
      stop,
    }
  } catch (cause) {
    await Promise.allSettled(starting)
    await stop()
    throw cause
  }
}
