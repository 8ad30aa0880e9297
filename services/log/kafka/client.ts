/**
 * The connection to a Kafka cluster: addresses, credentials, topic names, and the client.
 *
 * Every retry has a bound.
 */
import type * as Kafkajs from 'kafkajs'
import type { Logger } from 'pino'
import { type Topic, topics } from '../../../contracts/events/event.ts'
import { loadKafkajs } from './repairs/library.ts'

export interface KafkaSettings {
  /** host:port of some of the cluster's brokers. */
  brokers: readonly string[]
  /** Identifies this program in the brokers' logs and quotas. */
  clientId: string
  /** The prefix of every topic name. It may be empty. */
  topicPrefix: string
  /** TLS is used if this is given. `ca`: PEM text. Without it, Node's certificate authorities are trusted. */
  tls?: { ca?: string }
  sasl?: KafkaSasl
  /** How often a request is repeated while the cluster is away, at least 1. Default 8: about 20 s. */
  retriesMax?: number
}

/** What decides how topics are called in the cluster. */
export type TopicNames = Pick<KafkaSettings, 'topicPrefix'>

export interface KafkaSasl {
  mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
  username: string
  password: string
}

/** The backoff of every request: after 0.2 s, doubling up to 5 s. */
export function requestRetry({ retriesMax = 8 }: Pick<KafkaSettings, 'retriesMax'>): Kafkajs.RetryOptions {
  return { initialRetryTime: 200, multiplier: 2, factor: 0.2, maxRetryTime: 5_000, retries: retriesMax }
}

/** The name of a log: offsets count in a cluster, and in the topics of one prefix. `clusterId`: empty if the cluster does not tell. */
export function logName({ topicPrefix }: TopicNames, clusterId: string | null): string {
  return topicPrefix === '' ? (clusterId ?? '') : `${clusterId ?? ''}/${topicPrefix}`
}

const connectMsMax = 5_000
const silenceMsMax = 15_000

/** A client of the cluster. It does not connect yet. */
export function createKafka(settings: KafkaSettings, logger: Logger): Kafkajs.Kafka {
  const { brokers, clientId, tls, sasl } = settings
  const { Kafka, logLevel } = loadKafkajs()
  return new Kafka({
    brokers: [...brokers],
    clientId,
    connectionTimeout: connectMsMax,
    authenticationTimeout: silenceMsMax,
    requestTimeout: silenceMsMax,
    retry: requestRetry(settings),
    logLevel: logLevel.INFO,
    logCreator: () => entry => writeLog(logger, entry),
    ...(tls && { ssl: { ...tls } }),
    // A copy: kafkajs writes into it. And it has no type for a union of mechanisms.
    ...(sasl && { sasl: { ...sasl } as Kafkajs.SASLOptions }),
  })
}

/** Runs the work with the cluster's administration. */
export async function withAdmin<T>(
  settings: KafkaSettings,
  logger: Logger,
  work: (admin: Kafkajs.Admin) => Promise<T>,
): Promise<T> {
  const admin = createKafka(settings, logger).admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

/** A topic's name in the cluster. */
export function topicName({ topicPrefix }: TopicNames, topic: Topic): string {
  return `${topicPrefix}${topic}`
}

/** The topic that has this name in the cluster. Throws if there is none. */
export function topicOfName(settings: TopicNames, name: string): Topic {
  const topic = topics.find(known => topicName(settings, known) === name)
  if (!topic) throw new Error(`${name} is none of the topics`)
  return topic
}

/**
 * kafkajs mostly retries what it calls an error, so it is logged as a warning here. Everything else is logged at
 * debug level. So are the errors of every new or changing group, which kafkajs logs for every single request.
 */
function writeLog(logger: Logger, { label, namespace, log }: Kafkajs.LogEntry): void {
  const { message, broker, error } = log
  const line = { kafkajs: namespace, ...(broker && { broker }), ...(error && { error: String(error) }) }
  const isOrdinary = ordinaryErrors.some(part => String(error ?? message).includes(part))
  if (label === 'ERROR' && !isOrdinary) logger.warn(line, message)
  else logger.debug(line, message)
}

// kafkajs's messages for REBALANCE_IN_PROGRESS, GROUP_COORDINATOR_NOT_AVAILABLE and MEMBER_ID_REQUIRED.
const ordinaryErrors = [
  'The group is rebalancing, so a rejoin is needed',
  'The group coordinator is not available',
  'The group member needs to have a valid member id',
]

/** The id of the cluster. While no broker can tell it, kafkajs reads it from `null`: its TypeError becomes an outage. */
export async function clusterIdOf(admin: Pick<Kafkajs.Admin, 'describeCluster'>): Promise<string> {
  try {
    return (await admin.describeCluster()).clusterId
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause
    const error = new Error('no broker has told the id of the cluster', { cause })
    throw Object.assign(error, { name: 'KafkaJSMetadataNotLoaded' })
  }
}

/** Throws if the cluster lacks a topic. Elsewhere kafkajs asks for it again and again, because it may be just being made. */
export async function checkTopics(
  admin: Pick<Kafkajs.Admin, 'fetchTopicMetadata' | 'listTopics'>,
  settings: TopicNames,
): Promise<void> {
  const names = topics.map(topic => topicName(settings, topic))
  await admin.fetchTopicMetadata({ topics: names }).catch(async cause => {
    if (cause.type !== 'UNKNOWN_TOPIC_OR_PARTITION') throw cause
    const present = await admin.listTopics()
    const missing = names.filter(name => !present.includes(name))
    // The topic has just been made, and not every broker knows it yet.
    if (missing.length === 0) throw cause
    // It has no cause: with this one it would be an outage (`isOutage`).
    throw new Error(
      `the cluster does not have the topics ${missing.join(', ')}: run pledgeview migrate. If it had them, see deploy/restore.md first`,
    )
  })
}

/** Whether the cluster is away. False if the data or the request is wrong. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (outageNames.has(error.name)) return true
  if (error.name === 'KafkaJSProtocolError' && 'retriable' in error && error.retriable === true) return true
  return isOutage(error.cause)
}

/** How to try again while the cluster is away. */
export const whileAway = (msMax: number) => ({ isRetryable: isOutage, msMax, pauseMsMin: 500 })

const outageNames = new Set([
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSLockTimeout',
  'KafkaJSBrokerNotFound',
  'KafkaJSNoBrokerAvailableError',
  'KafkaJSGroupCoordinatorNotFound',
  'KafkaJSMetadataNotLoaded',
  'KafkaJSTopicMetadataNotLoaded',
])
