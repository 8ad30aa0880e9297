/**
 * Settings of the distributed processes and commands for Kafka, ClickHouse and the schema registry, from the
 * configuration.
 */
import { readFileSync } from 'node:fs'
import { createStateEncoder, encodeState, type StateEncoder } from '../../contracts/events/codec.ts'
import { type KafkaSettings, topicName } from '../log/kafka/client.ts'
import type { KafkaReaderSettings } from '../log/kafka/reader.ts'
import {
  createSchemaRegistry,
  registerSchemas,
  type SchemaRegistry,
} from '../log/registry/schema-registry.ts'
import { backerHasher, type HashBacker } from '../projector/ingest/backer-hash.ts'
import { opened } from '../runtime/async/closing.ts'
import { type Config, ConfigError } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import { fileSettingOf, secretFileNames } from '../runtime/secret-files.ts'
import type { TablesSettings } from '../tables/clickhouse/clickhouse.ts'
import { patientTables } from '../tables/clickhouse/patient.ts'
import { type FollowedDatabases, followedDatabases, generationOf } from '../tables/generation-log.ts'
import { around, type BaseDatabases, type Databases, type Tables } from '../tables/port.ts'
import { clusterSettings, distributedDatabases } from '../tables/schema/cluster.ts'
import { holdTablesIdentity } from '../tables/schema/identity.ts'
import { checkShards, openShards } from '../tables/shards.ts'
import type { Process } from './serve.ts'

/** Whether a command runs distributed, if it could run either way. */
export function isDistributed(config: Config): boolean {
  return config.PLEDGEVIEW_KAFKA_BROKERS !== undefined
}

/** The configuration with these settings present. Throws `ConfigError` that names every missing one. */
export function required<Name extends keyof Config>(
  config: Config,
  names: readonly Name[],
): { [N in Name]: NonNullable<Config[N]> } {
  const missing = names.filter(name => config[name] === undefined)
  if (missing.length > 0) {
    throw new ConfigError(
      `wrong settings:\n  ${missing.map(name => `${name}: ${missingText(name)}`).join('\n  ')}`,
    )
  }
  return config as { [N in Name]: NonNullable<Config[N]> }
}

function missingText(name: string): string {
  const fileSetting = fileSettingOf(name)
  return secretFileNames.includes(fileSetting) ? `has to be set, or ${fileSetting}` : 'has to be set'
}

export function kafkaSettings(config: Config): KafkaSettings {
  const { PLEDGEVIEW_KAFKA_BROKERS: brokers } = required(config, ['PLEDGEVIEW_KAFKA_BROKERS'])
  const mechanism = config.PLEDGEVIEW_KAFKA_SASL_MECHANISM
  return {
    brokers,
    clientId: config.PLEDGEVIEW_KAFKA_CLIENT_ID,
    topicPrefix: config.PLEDGEVIEW_KAFKA_TOPIC_PREFIX,
    ...(config.PLEDGEVIEW_KAFKA_TLS && { tls: certificate('ca', config.PLEDGEVIEW_KAFKA_TLS_CA_FILE) }),
    ...(mechanism && {
      sasl: {
        mechanism,
        username: config.PLEDGEVIEW_KAFKA_SASL_USERNAME ?? '',
        password: config.PLEDGEVIEW_KAFKA_SASL_PASSWORD ?? '',
      },
    }),
  }
}

/** The settings of a projector's membership in its consumer group. */
export function readerSettings(config: Config): KafkaReaderSettings {
  const sessionMs = config.PLEDGEVIEW_KAFKA_SESSION_MS
  return {
    ...kafkaSettings(config),
    groupId: config.PLEDGEVIEW_KAFKA_GROUP,
    sessionMs,
    heartbeatMs: sessionMs / 10,
    outageMsMax: config.PLEDGEVIEW_KAFKA_OUTAGE_MS_MAX,
  }
}

export function serverSettings(config: Config): TablesSettings {
  const { PLEDGEVIEW_CLICKHOUSE_URL: url } = required(config, ['PLEDGEVIEW_CLICKHOUSE_URL'])
  return {
    url,
    user: config.PLEDGEVIEW_CLICKHOUSE_USER,
    password: config.PLEDGEVIEW_CLICKHOUSE_PASSWORD,
    silenceMsMax: config.PLEDGEVIEW_CLICKHOUSE_SILENCE_MS_MAX,
    connectionsMax: config.PLEDGEVIEW_CLICKHOUSE_CONNECTIONS_MAX,
    idleConnectionMsMax: config.PLEDGEVIEW_CLICKHOUSE_IDLE_MS_MAX,
    ...certificate('caCertificate', config.PLEDGEVIEW_CLICKHOUSE_CA_FILE),
    ...(config.PLEDGEVIEW_CLICKHOUSE_CLUSTER !== undefined && { statementSettings: clusterSettings }),
  }
}

/**
 * The same tables for what a service reads at its start: a ClickHouse that starts at the same time may need longer. An interrupted wait
 * throws the signal's reason.
 */
export function patientAtStart(tables: Tables, { config, logger, signal }: Process): Tables {
  const interruptible = around(tables, work => {
    signal.throwIfAborted()
    return work()
  })
  return patientTables(interruptible, {
    ...{ retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX, signal },
    onRetry: ({ message }) => logger.warn({ error: message }, 'waiting for ClickHouse'),
  })
}

/** Hashes backers for a process that writes. Throws if the tables began with another key: every backer would be counted again. */
export async function hashBackerOf(
  config: Config,
  tables: Tables,
  databases: Databases,
): Promise<HashBacker> {
  const { PLEDGEVIEW_BACKER_KEY: backerKey } = required(config, ['PLEDGEVIEW_BACKER_KEY'])
  await holdTablesIdentity(tables, databases, {
    PLEDGEVIEW_BACKER_KEY: backerKey,
    PLEDGEVIEW_PLATFORM_CURRENCY: config.PLEDGEVIEW_PLATFORM_CURRENCY,
  })
  return backerHasher(backerKey)
}

/** The schema registry, if one is configured. */
export function registryOf(config: Config): SchemaRegistry | undefined {
  const url = config.PLEDGEVIEW_SCHEMA_REGISTRY_URL
  if (url === undefined) return undefined
  return createSchemaRegistry({
    url,
    user: config.PLEDGEVIEW_SCHEMA_REGISTRY_USER,
    password: config.PLEDGEVIEW_SCHEMA_REGISTRY_PASSWORD,
    ...certificate('caCertificate', config.PLEDGEVIEW_SCHEMA_REGISTRY_CA_FILE),
  })
}

/** The encoder for values: with the registry's ids (our schemas are registered if needed), or with the fixed ids. */
export async function stateEncoderOf(config: Config): Promise<StateEncoder> {
  const registry = registryOf(config)
  if (!registry) return encodeState
  return createStateEncoder(await registerSchemas(registry, topic => topicName(kafkaSettings(config), topic)))
}

/**
 * The databases in which projectors insert and the query service reads. On a cluster: the whole tables over all shards. Their generation is
 * known once they `follow` the tables.
 */
export function databasesOf(config: Config): FollowedDatabases {
  const isCluster = config.PLEDGEVIEW_CLICKHOUSE_CLUSTER !== undefined
  const whole: typeof generationOf = (...of) => distributedDatabases(generationOf(...of))
  return followedDatabases(namedDatabases(config), isCluster ? whole : generationOf)
}

/**
 * The name of the cluster and its shards, or `undefined` if none is configured. Throws if the cluster has other shards than configured, or the
 * error of ClickHouse. Their databases are of the generation that `whole` follows.
 */
export async function clusterOf(config: Config, whole: FollowedDatabases) {
  const { PLEDGEVIEW_CLICKHOUSE_CLUSTER: name, PLEDGEVIEW_CLICKHOUSE_SHARD_URLS: urls } = config
  if (name === undefined || urls === undefined) return undefined
  return opened(async open => {
    const shards = open(openShards(serverSettings(config), urls, whole.ofShard))
    await checkShards(shards, name)
    return { name, shards: shards.shards }
  })
}

export function namedDatabases(config: Config): BaseDatabases {
  return { base: config.PLEDGEVIEW_DATABASE, views: config.PLEDGEVIEW_VIEWS_DATABASE }
}

function certificate<Name extends string>(name: Name, path: string | undefined): { [N in Name]?: string } {
  if (path === undefined) return {}
  try {
    return { [name]: readFileSync(path, 'utf8') } as { [N in Name]?: string }
  } catch (error) {
    throw new ConfigError(`the certificate ${path} cannot be read: ${messageOf(error)}`)
  }
}
