/**
 * `npm run stack`: the distributed form on this machine, for a person to play with: real Kafka, Redis and schema
 * registry, ClickHouse as chDB behind the HTTP door, two projectors and two query services as processes of their own.
 * Ctrl-C ends all of it.
 */
import { once } from 'node:events'
import { type Apicurio, apicurioRegistry, startApicurio } from './apicurio.ts'
import { type ClickHouseDoor, startClickHouseDoor } from './clickhouse-door.ts'
import { type Addresses, deploy } from './deployment.ts'
import { type KafkaBroker, startKafka } from './kafka/broker.ts'
import { type KafkaVersion, kafkaRequirement } from './kafka/jars.ts'
import { type RedisProcess, redisProgram, startRedis } from './redis.ts'
import type { Requirement } from './requirements.ts'

/** Services of this run's own, on free ports, that a test may hold, kill and start again. */
export interface LocalServices {
  addresses: Required<Pick<Addresses, 'kafka' | 'clickHouse' | 'redis'>> & Addresses
  kafka: KafkaBroker
  clickHouse: ClickHouseDoor
  redis: RedisProcess
  schemaRegistry: Apicurio | undefined
  stop(): Promise<void>
}

export interface LocalServiceOptions {
  kafkaVersion?: KafkaVersion
  /** Default: none, and the schema ids are the fixed ones. */
  withSchemaRegistry?: boolean
}

const newestKafka: KafkaVersion = '4.4.0'

/** Whether all that `startLocalServices` needs is there; what has to be fetched first is fetched. */
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

/** Starts them all. Rejects where one does not start, and then leaves none behind. */
export async function startLocalServices({
  kafkaVersion = newestKafka,
  withSchemaRegistry = false,
}: LocalServiceOptions = {}): Promise<LocalServices> {
  const started: (() => Promise<void>)[] = []
  async function kept<T>(starting: Promise<T>, stop: (service: T) => Promise<void>): Promise<T> {
    const service = await starting
    started.push(() => stop(service))
    return service
  }
  const stop = async () => void (await Promise.all(started.map(stopOne => stopOne())))
  try {
    // One after the other: whatever fails, all that has started is known.
    const kafka = await kept(startKafka(kafkaVersion), broker => broker.stop())
    const clickHouse = await kept(startClickHouseDoor(), door => door.stop())
    const redis = await kept(startRedis(), server => server.close())
    const schemaRegistry = withSchemaRegistry
      ? await kept(startApicurio(), registry => registry.close())
      : undefined
    return {
      addresses: {
        kafka: kafka.address,
        clickHouse: clickHouse.url,
        redis: redis.url,
        ...(schemaRegistry && { schemaRegistry: schemaRegistry.url }),
      },
      kafka,
      clickHouse,
      redis,
      schemaRegistry,
      stop,
    }
  } catch (cause) {
    await stop()
    throw cause
  }
}

async function main(): Promise<void> {
  const options = { withSchemaRegistry: true }
  const requirement = await localServices(options)
  if (!requirement.isMet) throw new Error(requirement.reason)
  const services = await startLocalServices(options)
  const deployment = await deploy(services.addresses)
  const started = [
    await deployment.startProjector(),
    await deployment.startProjector(),
    await deployment.startQuery(),
    await deployment.startQuery(),
  ]
  for (const { output } of started) process.stdout.write(output())
  const settings = Object.entries(deployment.environment).map(([name, value]) => `export ${name}=${value}`)
  process.stdout.write(
    `\nFor the commands (events append, keys, status, rejects, migrate), in another terminal:\n\n${settings.join('\n')}\n`,
  )
  await once(process, 'SIGINT')
  await deployment.stop()
  await services.stop()
}

if (import.meta.main) await main()
