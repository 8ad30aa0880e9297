/**
 * State topics on Kafka. A follower feeds the memory; reads answer from it while the follower is known to be near the end of
 * every partition. Otherwise, and after each write, a read asks the brokers for the ends, and waits for them.
 */
import type { Logger } from 'pino'
import type { PortalTopic } from '../../../../contracts/events/portal-event.ts'
import { messageOf } from '../../message-of.ts'
import { backoffMs } from '../../retry.ts'
import { sleep } from '../../sleep.ts'
import {
  defaultBehindMsMax,
  defaultStateBounds,
  defaultWaitMsMax,
  type StateTopic,
  type StateTopicOptions,
  StateTopicUnavailable,
} from '../state-topic.ts'
import { createStateMemory, encodeChanges } from '../state-topic-memory.ts'
import { createKafka, type KafkaSettings, topicName } from './client.ts'
import { type DirectCluster, directCluster, readOffsets } from './direct.ts'
import { type Follower, follow } from './follower.ts'
import { createPartitioner } from './partition.ts'
import { openProducer, type Producer } from './producer.ts'

// The caller has a bound of its own, and asks again.
const retriesMax = 3
const openMsMax = 60_000
const lookPauses = { pauseMsMin: 50, pauseMsMax: 1_000 }

/**
 * Connects to the topic, which has to exist (`pledgeview migrate`). Resolves when memory has all of it. Throws
 * `StateTopicUnavailable` if that takes longer than a minute.
 */
export async function openKafkaStateTopic<T extends PortalTopic>(
  settings: KafkaSettings,
  topic: T,
  { logger }: { logger: Logger },
  options: StateTopicOptions = {},
): Promise<StateTopic<T>> {
  const bounded = { ...settings, retriesMax }
  const producer = await openProducer(bounded, { compression: 'lz4', createPartitioner, logger }).catch(
    (cause: unknown) => {
      throw unavailable(topicName(settings, topic), messageOf(cause), cause)
    },
  )
  const opened = over(bounded, topic, producer, { logger, ...options })
  try {
    await opened.refreshWithin(openMsMax)
    return opened
  } catch (cause) {
    await opened.close()
    throw cause
  }
}

function over<T extends PortalTopic>(
  settings: KafkaSettings,
  topic: T,
  producer: Producer,
  {
    logger,
    bounds = defaultStateBounds,
    behindMsMax = defaultBehindMsMax,
    waitMsMax = defaultWaitMsMax,
  }: StateTopicOptions & { logger: Logger },
): StateTopic<T> & { refreshWithin(msMax: number): Promise<void> } {
  const name = topicName(settings, topic)
  const kafka = createKafka(settings, logger)
  let memory = createStateMemory(topic, bounds, logger)
  const follower = follow({
    kafka,
    topic: name,
    logger,
    onBegin: () => {
      memory = createStateMemory(topic, bounds, logger)
    },
    onRecord: record => memory.apply(record),
  })
  const ends = createEnds(() => directCluster(kafka), name)

  async function refreshWithin(msMax: number): Promise<void> {
    const deadline = performance.now() + msMax
    const wanted = await ends.within(msMax)
    if (await follower.until(wanted, deadline - performance.now())) return
    throw unavailable(name, follower.failure() ?? `its end was not reached within ${msMax} ms`)
  }

  async function untilNear(): Promise<void> {
    if (follower.behindMs() > behindMsMax) await refreshWithin(waitMsMax)
  }

  return {
    topic,
    refreshWithin,
    refresh: () => refreshWithin(waitMsMax),
    async get(key) {
      await untilNear()
      return memory.get(key)
    },
    async group(group) {
      await untilNear()
      return memory.group(group)
    },
    async all() {
      await untilNear()
      return memory.all()
    },
    async write(changes) {
      memory.checkRoom(changes)
      const messages = encodeChanges(changes).map(message => ({ topic: name, message }))
      await within(waitMsMax, name, producer.send(messages))
      await refreshWithin(waitMsMax)
    },
    skipped: () => memory.skipped(),
    health: () => healthOf(follower, behindMsMax),
    async close() {
      await Promise.all([producer.close(), follower.stop(), ends.close()])
    },
  }
}

function healthOf(follower: Follower, behindMsMax: number): { ok: boolean; detail: string } {
  const failure = follower.failure()
  if (failure !== undefined) return { ok: false, detail: failure }
  const behindMs = follower.behindMs()
  return behindMs > behindMsMax ? { ok: false, detail: 'is being read' } : { ok: true, detail: 'up to date' }
}

interface Ends {
  /** The end of each partition, at a moment after the call. */
  within(msMax: number): Promise<Map<number, number>>
  close(): Promise<void>
}

/**
 * Asks for the ends on a connection of its own, because a broker answers the requests of a connection in turn, and a fetch
 * waits. Calls that come while a question is under way share the next one.
 */
function createEnds(connection: () => DirectCluster, name: string): Ends {
  let connected: Promise<DirectCluster> | undefined
  let present: Promise<unknown> | undefined
  let next: Promise<Map<number, number>> | undefined
  const closing = new AbortController()

  async function connect(): Promise<DirectCluster> {
    const cluster = connection()
    try {
      await cluster.connect()
      await cluster.addTargetTopic(name)
      return cluster
    } catch (cause) {
      await cluster.disconnect().catch(() => undefined)
      throw cause
    }
  }

  async function ask(): Promise<Map<number, number>> {
    connected ??= connect()
    const cluster = connected
    try {
      const open = await cluster
      await open.refreshMetadataIfNecessary()
      return await readOffsets(open, name, 'end')
    } catch (cause) {
      // Perhaps another broker leads a partition now. A new connection begins with new metadata.
      connected = undefined
      await cluster.then(open => open.disconnect()).catch(() => undefined)
      throw cause
    }
  }

  function shared(): Promise<Map<number, number>> {
    next ??= (async () => {
      await present?.catch(() => undefined)
      const asked = ask()
      present = asked
      next = undefined
      return await asked
    })()
    return next
  }

  return {
    async within(msMax) {
      const deadline = performance.now() + msMax
      for (let failures = 1; ; failures++) {
        try {
          return await within(deadline - performance.now(), name, shared())
        } catch (cause) {
          if (isMissing(cause)) throw missing(name, cause)
          const pauseMs = backoffMs(failures, lookPauses)
          const isLate = performance.now() + pauseMs > deadline
          if (isLate || closing.signal.aborted) throw unavailable(name, messageOf(cause), cause)
          await sleep(pauseMs, closing.signal)
        }
      }
    },
    async close() {
      closing.abort()
      await connected?.then(open => open.disconnect()).catch(() => undefined)
    },
  }
}

function missing(name: string, cause: unknown): StateTopicUnavailable {
  return new StateTopicUnavailable(`the cluster has no topic ${name}: run pledgeview migrate`, { cause })
}

function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION') || isMissing(error.cause)
}

/** The result of the work, or `StateTopicUnavailable` if it fails or takes longer. It may still end later. */
async function within<R>(msMax: number, name: string, work: Promise<R>): Promise<R> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(unavailable(name, `no answer within ${Math.round(msMax)} ms`)), msMax)
  try {
    return await Promise.race([work, late])
  } catch (cause) {
    work.catch(() => undefined)
    throw cause instanceof StateTopicUnavailable ? cause : unavailable(name, messageOf(cause), cause)
  } finally {
    clearTimeout(timer)
  }
}

function unavailable(name: string, reason: string, cause?: unknown): StateTopicUnavailable {
  if (cause instanceof StateTopicUnavailable) return cause
  return new StateTopicUnavailable(`the topic ${name} does not answer: ${reason}`, { cause })
}
