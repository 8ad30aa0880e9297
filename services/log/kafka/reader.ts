/**
 * Reads the event log on Kafka: kafkajs pushes, the port pulls.
 *
 * A member of the group fetches into a bounded buffer and sends heartbeats by itself. So a caller may spend any time on a
 * batch. Positions are committed under the assignment that they were fetched under, or not at all.
 *
 * How it fails: the cluster is away for longer than `outageMsMax`, or is another one, records are missing, or
 * kafkajs stopped. Then `poll` and `commit` throw the reason for good, and the process has to end.
 */
import type { Logger } from 'pino'
import { createNotifier, type Notifier } from '../../runtime/async/notifier.ts'
import { retry } from '../../runtime/async/retry.ts'
import { within } from '../../runtime/async/sleep.ts'
import { type EventReader, type FindStarts, partitionName, SupersededAssignment } from '../port.ts'
import { checkTopics, clusterIdOf, createKafka, type KafkaSettings, logName, whileAway } from './client.ts'
import { type Assignment, type AssignmentStarts, createAssignments } from './group/assignment.ts'
import { createCommits, foldPartition, higher, readWatermark } from './group/commits.ts'
import { createMember, rebalanceMsMax } from './group/consumer.ts'
import { checkStarts, outOfRange, readCommitted, readRanges } from './offsets.ts'

export interface KafkaReaderSettings extends KafkaSettings {
  /** The consumer group. Its positions are for the tools that show lag. */
  groupId: string
  /** How long a reader may be silent before the group removes it, ms. */
  sessionMs: number
  /** How often the reader sends a heartbeat, ms. Less than a third of `sessionMs`. */
  heartbeatMs: number
  /** How much is fetched ahead. One fetch of a broker may exceed it. Defaults 90,000 and 32 MiB. */
  bufferRecordsMax?: number
  bufferBytesMax?: number
  /** How long the cluster may be away before the reader gives up, ms. */
  outageMsMax: number
  /** How long `lag` waits until the group has given the reader its partitions, ms. Default 10,000. */
  lagMsMax?: number
}

export interface KafkaReader extends EventReader {
  /** What is fetched and not taken yet. Bytes are those of keys, values and header values. */
  buffered(): { records: number; bytes: number }
}

const defaults = { bufferRecordsMax: 90_000, bufferBytesMax: 32 * 1024 ** 2, lagMsMax: 10_000 }
const closeMsMax = 10_000
// A join waits for the other members, which may be writing a batch.
const joinMsMax = rebalanceMsMax + 30_000
// After a restore, finding the starts reads the batch log of a month.
const startMsMax = 900_000
// How often a waiting call checks whether the cluster is still there.
const lookMsMax = 1_000

/**
 * Joins the group. Resolves when the reader knows its partitions and their positions. Throws if the cluster cannot be
 * reached, a topic is missing, or records are missing.
 */
export async function openKafkaReader(
  given: KafkaReaderSettings,
  { logger, starts }: { logger: Logger; starts: FindStarts },
): Promise<KafkaReader> {
  const settings = { ...defaults, ...given }
  const kafka = createKafka(settings, logger)
  const admin = kafka.admin()
  const cluster = { admin, names: settings }
  const waiting = new Set<Notifier>()
  const liveness = createLiveness(settings, giveUp)
  let log = ''
  let finding: ReturnType<FindStarts['find']> = Promise.resolve(new Map())
  const assignments = createAssignments({
    ...settings,
    member: () => member,
    findStarts,
    readRanges: () => withRetry(() => readRanges(cluster)),
    beginAnew: (range, reason) => starts.beginAnew(range, reason),
    onChange() {
      for (const notifier of waiting) notifier.notify()
    },
    onFailure: liveness.fail,
    restate: ({ name }, partition) => commits.restate(name, partition).catch(unlessSuperseded),
    // The tables may be ahead of the group, after a rebuild for example. The tools that show lag would wait for the next record.
    onReading: ({ name }, positions) => commits.commit(name, positions).catch(unlessSuperseded),
    logger,
  })
  const { present } = assignments
  const buffered = () => present().buffer.held()
  const events = { ...assignments, onAlive: liveness.onAlive, onFailure: liveness.fail }
  const member = createMember({ kafka, settings, events, logger })
  const commits = createCommits({ member, present, withRetry })

  /** Other members may get the partitions at once, so nothing that is still running can be committed. */
  function giveUp(error: Error): void {
    logger.error({ error: error.message }, 'the reader gives up its partitions')
    assignments.onLeave()
    member.close().catch(cause => logger.warn({ error: String(cause) }, 'leaving the group failed'))
  }

  /** Tries again while the cluster is away, for at most `outageMsMax`. Stops if the reader is no longer alive. */
  function withRetry<T>(work: () => Promise<T>): Promise<T> {
    const isFinal = (error: unknown) => error === liveness.failure() || error instanceof SupersededAssignment
    const away = whileAway(settings.outageMsMax)
    const isRetryable = (error: unknown) => !isFinal(error) && away.isRetryable(error)
    const attempt = () => {
      liveness.check()
      return work()
    }
    return retry(attempt, { ...away, isRetryable })
  }

  const readLog = () => withRetry(async () => logName(settings, await clusterIdOf(admin)))

  /**
   * Where the partitions begin. `starts` waits for its own services, for longer than Kafka may be away. So it is not part of a retry. The
   * group's generation is new, so no other reader can change what the group remembers any more. Throws if records are missing.
   */
  async function findStarts(assignment: Assignment): Promise<AssignmentStarts> {
    const { groupId } = settings
    // In turn: after `restart` the generation is the same, and a commit of the assignment before may be under way.
    const committed = await commits.inTurn(() => readCommitted(cluster, groupId))
    const inGroup = await commits.inTurn(() => readWatermark(cluster, groupId))
    const watermark = higher(inGroup, assignment.watermark)
    // `starts.find` makes this assignment the active one, maybe only when it ends. So it is asked for one assignment after the other, and
    // not for one that has been superseded. The ranges are those of its own turn: records that come until then are behind them.
    const ask = async () => {
      const ranges = await withRetry(() => readRanges(cluster))
      const presentLog = await readLog()
      // Rejects and the batch log name the log of this reader.
      if (presentLog !== log)
        throw new Error(
          `the brokers are of the log ${presentLog} now, no longer of ${log}: start the process again`,
        )
      if (assignment !== present()) throw new SupersededAssignment(`${assignment.name} has ended`)
      const partitions = [...ranges.values()]
      return starts.find({ log, assignment: assignment.name, partitions, remembered: watermark })
    }
    finding = finding.then(ask, ask)
    const found = await finding
    const nextOf = new Map([...found].map(([name, { next }]) => [name, next]))
    const held = [...assignment.partitions.values()]
    const { ranges, faults } = await withRetry(() => checkStarts(cluster, held, nextOf))
    const isReplaced = (name: string) => (nextOf.get(name) ?? 0) > (ranges.get(name)?.end ?? 0)
    const final = [...faults].filter(([name]) => !isReplaced(name))
    if (final.length > 0)
      throw outOfRange(
        groupId,
        final.map(([name, fault]) => `${name}: ${fault}`),
      )
    return {
      ranges,
      watermark,
      committed,
      starts: new Map([...found].filter(([name]) => !isReplaced(name))),
      replaced: new Map([...faults].filter(([name]) => isReplaced(name))),
    }
  }

  /** Waits until there is more to take, something else changed, or the time is over. */
  async function change(msMax: number, signal = new AbortController().signal): Promise<void> {
    const notifier = createNotifier()
    waiting.add(notifier)
    try {
      await notifier.wait(Math.min(msMax, lookMsMax), signal)
    } finally {
      waiting.delete(notifier)
    }
  }

  async function until(isDone: (assignment: Assignment) => boolean, msMax: number): Promise<Assignment> {
    const deadline = performance.now() + msMax
    for (;;) {
      liveness.check()
      if (isDone(present())) return present()
      const leftMs = deadline - performance.now()
      if (leftMs <= 0)
        throw new Error(
          `the group ${settings.groupId} gave no partitions for ${msMax} ms, or their positions cannot be read`,
        )
      await change(leftMs)
    }
  }

  const reading = (msMax: number) => until(({ isReading }) => isReading, msMax)

  /** Leaves the group, but does not wait for ever. The group removes a silent member anyway. */
  async function close(): Promise<void> {
    liveness.close()
    assignments.onLeave()
    const left = member.close().then(() => admin.disconnect())
    await within(closeMsMax, left).catch(cause =>
      logger.warn({ error: String(cause) }, 'leaving the Kafka cluster failed'),
    )
  }

  async function join(): Promise<void> {
    await admin.connect()
    await checkTopics(admin, settings)
    log = await readLog()
    await member.start()
    await until(({ isJoined }) => isJoined, joinMsMax)
    await reading(startMsMax)
  }

  await join().catch(async cause => {
    await close()
    throw cause
  })

  return {
    log,

    async poll(bounds, signal) {
      const deadline = performance.now() + bounds.waitMsMax
      for (;;) {
        liveness.check()
        const leftMs = deadline - performance.now()
        // Positions that moved without a record wait: most of them go with the next records.
        if (buffered().records > 0 || leftMs <= 0 || signal.aborted) return assignments.take(bounds)
        await change(leftMs, signal)
      }
    },

    commit: commits.commit,
    rememberWatermark: commits.rememberWatermark,

    async restart() {
      assignments.restart()
    },

    async lag() {
      const ranges = await withRetry(() => readRanges(cluster))
      // Only now: an assignment that has ended meanwhile may have been further than the one that follows it.
      const { partitions } = await reading(settings.lagMsMax)
      return [...partitions].map(([name, { topic, partition, committed }]) => {
        return { topic, partition, committed, end: ranges.get(name)?.end ?? committed }
      })
    },

    leads: () =>
      present().isReading && present().partitions.has(partitionName(foldPartition)) && liveness.isMember(),

    buffered,
    close,
  }
}

/** The next assignment commits what its tables have, and its watermark with the next fold. */
function unlessSuperseded(error: unknown): void {
  if (!(error instanceof SupersededAssignment)) throw error
}

/** Whether a reader is alive: its group hears from it, and nothing has failed for good. */
function createLiveness({ sessionMs, outageMsMax }: KafkaReaderSettings, onFailure: (error: Error) => void) {
  let aliveAt = performance.now()
  let failure: Error | undefined

  /** Ends the reader's life. Every call throws this reason from then on. Only the first reason is kept. */
  function fail(error: Error): void {
    if (failure) return
    failure = error
    onFailure(error)
  }

  return {
    fail,
    /** The group's coordinator answered. */
    onAlive() {
      aliveAt = performance.now()
    },
    /** Throws the reason if the reader is no longer alive. */
    check() {
      const silentMs = performance.now() - aliveAt
      if (silentMs > outageMsMax) {
        fail(new Error(`the Kafka cluster has been away for ${Math.round(silentMs)} ms`))
      }
      if (failure) throw failure
    },
    failure: () => failure,
    /** Whether the group still counts on this reader: the coordinator has heard from it within the session. */
    isMember: () => !failure && performance.now() - aliveAt <= sessionMs,
    close() {
      failure ??= new Error('the reader is closed')
    },
  }
}
