/**
 * `npm run stack`: the distributed form on this machine, to try by hand. It runs Kafka, ClickHouse, Redis and a schema
 * registry, and two projectors and two query services as separate processes. With `--shards N` ClickHouse is a cluster of N
 * servers, each of which is a shard.
 *
 * It reports its progress, prints all addresses, issues a key, and removes everything on Ctrl-C.
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { type ClickHouse, startClickHouse } from '../clickhouse/clickhouse.ts'
import { type ShardServers, startShards } from '../clickhouse/shards.ts'
import { type KafkaBroker, startKafka } from '../kafka/broker.ts'
import { type KafkaVersion, kafkaRequirement } from '../kafka/jars.ts'
import { killedOften } from '../kafka/test-properties.ts'
import type { Requirement } from '../runner/requirements.ts'
import { type Apicurio, apicurioRegistry, startApicurio } from '../servers/apicurio.ts'
import { type RedisProcess, redisProgram, startRedis } from '../servers/redis.ts'
import { type Addresses, type Deployment, deploy } from './deployment.ts'

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

const newestKafka: KafkaVersion = '4.4.0'

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
            () => startClickHouse(),
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

const shardsMax = 8

/** The number of shards that the arguments ask for; `undefined`: one server, and no cluster. Throws if it is not one. */
export function shardsOf(args: readonly string[]): number | undefined {
  const { values } = parseArgs({ args: [...args], options: { shards: { type: 'string' } } })
  if (values.shards === undefined) return undefined
  const shards = Number(values.shards)
  if (Number.isInteger(shards) && shards >= 1 && shards <= shardsMax) return shards
  throw new Error(`--shards takes a number from 1 to ${shardsMax}, not ${values.shards}`)
}

async function main(): Promise<void> {
  const say = (text: string) => void process.stderr.write(`${text} ...\n`)
  say('checking that Kafka, Redis and the schema registry are installed (the first time this downloads them)')
  const shards = shardsOf(process.argv.slice(2))
  const options = { withSchemaRegistry: true, shards, onProgress: say }
  const requirement = await localServices(options)
  if (!requirement.isMet) throw new Error(requirement.reason)
  const services = await startLocalServices(options)
  try {
    say('creating the topics and the tables')
    const deployment = await deploy(services.addresses)
    try {
      await run(deployment, services, say)
    } finally {
      say('stopping the projectors and the query services')
      await deployment.stop()
    }
  } finally {
    say('stopping the services; their data is removed')
    await services.stop()
  }
}

/** Runs the program's own processes until the first Ctrl-C. */
async function run(
  deployment: Deployment,
  { addresses, shards }: LocalServices,
  say: (text: string) => void,
): Promise<void> {
  const interrupted = once(process, 'SIGINT')
  say('starting two projectors')
  const projectors = [await deployment.startProjector(), await deployment.startProjector()]
  say('starting two query services')
  const queries = [await deployment.startQuery(), await deployment.startQuery()]
  say('issuing a key')
  const issued = await deployment.command([
    ...['keys', 'issue', '--json', '--account', 'stack', '--name', 'Stack'],
    ...['--url', 'https://example.com', '--email', 'stack@example.com'],
  ])
  if (issued.code !== 0) throw new Error(`no key could be issued: ${issued.stderr}`)
  const { key, secret } = JSON.parse(issued.stdout) as { key: string; secret: string }
  const places = [
    ...queries.map(({ apiUrl, opsUrl }) => ['query service', `${apiUrl} (ops: ${opsUrl})`]),
    ...projectors.map(({ opsUrl }) => ['projector', `ops: ${opsUrl}`]),
    ['Kafka', addresses.kafka],
    ...(shards?.servers ?? [addresses.clickHouse]).map(({ url, user }, index) => [
      shards ? `shard ${index + 1}` : 'ClickHouse',
      `${url} (user ${user})`,
    ]),
    ['Redis', addresses.redis],
    ['schema registry', addresses.schemaRegistry ?? 'none'],
  ]
  const settings = Object.entries(deployment.environment).map(([name, value]) => `export ${name}='${value}'`)
  process.stdout.write(`
Everything runs:

${places.map(([name = '', place]) => `  ${name.padEnd(16)}${place}`).join('\n')}

A key was issued. Its secret is not shown again. Try:

  curl -s -H 'X-API-Key: ${key}' -H 'X-API-Secret: ${secret}' '${queries[0]?.apiUrl}/projects?limit=3'

For the commands (events append, keys, status, rejects, purge, rebuild), paste this in another terminal first:

${settings.join('\n')}

Ctrl-C stops everything and removes its data.
`)
  await interrupted
}

if (import.meta.main) await main()
