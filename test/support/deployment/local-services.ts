/** The services of the distributed form for one suite, on free ports of this machine: Kafka, ClickHouse, Redis, a registry. */
import { tmpdir } from 'node:os'
import { startClickHouse } from '../clickhouse/clickhouse.ts'
import { startShards } from '../clickhouse/shards.ts'
import { startKafka } from '../kafka/broker.ts'
import { kafkaRequirement, newestKafka } from '../kafka/jars.ts'
import { killedOften } from '../kafka/test-properties.ts'
import type { Requirement } from '../runner/requirements.ts'
import { apicurioRegistry, startApicurio } from '../servers/apicurio.ts'
import { redisProgram, startRedis } from '../servers/redis.ts'
import type { Addresses } from './deployment.ts'

/** Services that only this run uses, on free ports. A test may pause, kill and restart them. */
export type LocalServices = Awaited<ReturnType<typeof startLocalServices>>

export interface LocalServiceOptions {
  /** Default: no registry. Then the schema ids are the fixed ones. */
  withSchemaRegistry?: boolean
  /** Makes ClickHouse a cluster of this many servers, each of which is a shard. Default: one server, and no cluster. */
  shards?: number | undefined
  /** Called before each service is started, with its description. */
  onProgress?: (text: string) => void
}

/** Options of a ClickHouse server that may write backups below the directory for temporary files. */
export const withBackups = {
  more: { backups: { allowed_path: tmpdir(), allow_concurrent_backups: 'false' } },
}

/** Whether everything that `startLocalServices` needs is installed. Downloads what has to be downloaded first. */
export async function localServices({
  withSchemaRegistry = false,
}: LocalServiceOptions = {}): Promise<Requirement> {
  const all = [
    redisProgram,
    await kafkaRequirement(newestKafka),
    ...(withSchemaRegistry ? [await apicurioRegistry()] : []),
  ]
  return all.find(requirement => !requirement.isMet) ?? { isMet: true, reason: '' }
}

/** Starts them all at once. If one does not start, it stops the others and rejects. */
export async function startLocalServices({
  withSchemaRegistry = false,
  shards: shardCount,
  onProgress = () => {},
}: LocalServiceOptions = {}) {
  const closing = new AsyncDisposableStack()
  const starting: Promise<unknown>[] = []
  function kept<T>(name: string, started: Promise<T>, stop: (service: T) => Promise<void>): Promise<T> {
    onProgress(`starting ${name}`)
    const adopted = started.then(service => closing.adopt(service, stop))
    starting.push(adopted)
    return adopted
  }
  try {
    const [kafka, shards, single, redis, schemaRegistry] = await Promise.all([
      kept('Kafka', startKafka(newestKafka, killedOften), one => one.stop()),
      shardCount === undefined
        ? undefined
        : kept(`${shardCount} shards of ClickHouse`, startShards(shardCount, { hasLinks: true }), all =>
            all.stop(),
          ),
      shardCount === undefined
        ? kept('ClickHouse', startClickHouse(withBackups), one => one.stop())
        : undefined,
      kept('Redis', startRedis(), one => one.close()),
      withSchemaRegistry ? kept('the schema registry', startApicurio(), one => one.close()) : undefined,
    ])
    const clickHouse = shards?.servers[0] ?? single
    if (!clickHouse) throw new Error('a cluster has at least one server')
    const addresses: Addresses & Required<Pick<Addresses, 'redis'>> = {
      kafka: kafka.address,
      clickHouse,
      ...(shards && { cluster: shards.environment }),
      redis: redis.url,
      ...(schemaRegistry && { schemaRegistry: schemaRegistry.url }),
    }
    return {
      addresses,
      kafka,
      /** On a cluster, the first server. */
      clickHouse,
      shards,
      redis,
      schemaRegistry,
      stop: () => closing.disposeAsync(),
    }
  } catch (cause) {
    await Promise.allSettled(starting)
    await closing.disposeAsync()
    throw cause
  }
}
