/**
 * The projector as a service: the ingest loop and the fold loops, connected to an event log and to tables.
 *
 * The same code runs on Kafka and on the journal. It ends when its signal aborts. If one of the loops cannot go on, the
 * service stops all of them and throws.
 */
import type { EventReader } from '../log/port.ts'
import { SchemaRegistryError } from '../log/registry/answers.ts'
import type { SchemaRegistry } from '../log/registry/schema-registry.ts'
import type { Config } from '../runtime/config.ts'
import { messageOf } from '../runtime/message-of.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { tablesOfCurrent } from '../tables/generation-log.ts'
import type { Databases, Shard, Tables } from '../tables/port.ts'
import { noteLead, reportProjection } from '../tables/projector-stops.ts'
import { createRejectStore } from '../tables/rejects.ts'
import { rejectCounts } from '../tables/stored-rejects.ts'
import { createFoldWorkers, untilFirstFails } from './fold/fold-workers.ts'
import { followGenerations } from './follow.ts'
import { createProjectorGauges, type RebuildUnderWay } from './gauges.ts'
import type { HashBacker } from './ingest/backer-hash.ts'
import { createDecoder } from './ingest/decode.ts'
import { openCircuitBreaker } from './ingest/reject-circuit-breaker.ts'
import { createObserver } from './observer.ts'
import { createLastRead } from './positions/last-read.ts'
import type { Positions } from './positions/positions.ts'
import { readClaims, readSharedSlugs } from './producers/claims.ts'
import { createFaultReport } from './producers/fault-report.ts'
import { createVersionCheck, versionFault } from './producers/versions.ts'
import { runProjector } from './projector.ts'
import { type ProjectorNote, writeNote } from './projector-log.ts'
import { runRewriteLoop } from './rewrite-loop.ts'
import { idleMsMax, projectorSettings, stillMsMaxOf } from './settings.ts'
import { createUnfolded, watchUncommitted } from './waiting.ts'

export interface ProjectorServiceDependencies extends Runtime {
  reader: EventReader
  tables: Tables
  databases: Databases
  /** The shards, each with its own fold worker. On one server: the tables themselves. */
  shards: readonly Shard[]
  /** The positions with which the reader begins. */
  positions: Positions
  config: Config
  /** Knows the schema of each schema id. Without it the fixed ids are used. */
  schemaRegistry?: SchemaRegistry | undefined
  hashBacker: HashBacker
  /** Names this run of this process; unique. */
  run: string
  /** How often to note that everything is read, ms. Default: never, for a log that keeps its tombstones. */
  lastReadMs?: number
  /** Looks up which generation is current, and changes `databases` and those of the shards. */
  follow: (stopping?: AbortSignal) => Promise<unknown>
  /** Makes the data teams' views show the current generation. */
  showViews: () => Promise<void>
  /** See `FoldWorkerDependencies`. */
  isGivenUp: (attempt: number) => Promise<boolean>
  /** The rebuild that is under way, for the metrics. */
  rebuild: () => Promise<RebuildUnderWay | undefined>
}

export type ProjectorService = ReturnType<typeof createProjectorService>

export function createProjectorService(dependencies: ProjectorServiceDependencies) {
  const { databases, config, logger, monotonicMs, run, lastReadMs, positions, follow } = dependencies
  const { reader, oldest } = watchUncommitted(dependencies.reader, dependencies.now)
  const observer = createObserver(dependencies)
  const ofCurrent = (of: Shard): Tables => tablesOfCurrent(of.tables, of.databases, follow)
  const tables = ofCurrent(dependencies)
  let movedAt = monotonicMs()
  let failure: string | undefined
  let records = 0
  let rejects = 0

  const shards = dependencies.shards.map(shard => ({ ...shard, tables: ofCurrent(shard) }))
  const foldWorkers = createFoldWorkers({
    ...dependencies,
    ...observer,
    shards,
    holder: run,
    leads: () => reader.leads(),
    rememberWatermark: (watermark, shown) => reader.rememberWatermark(watermark, shown),
    noteLead: () => noteLead(tables, databases, run),
    idleMsMax,
    retryMsMax: config.PLEDGEVIEW_RETRY_MS_MAX,
  })

  const unfolded = createUnfolded(shards, () => foldWorkers.lastFold()?.beganAt, dependencies)
  const readGauges = createProjectorGauges({
    ...dependencies,
    servers: shards.map(shard => shard.tables),
    isRunning: () => failure === undefined,
    ...foldWorkers,
    oldestUncommitted: oldest,
    unfolded,
    lag: () => reader.lag(),
    rejectCounts: () => rejectCounts({ tables, databases }),
    sharedSlugCount: async () => (await readSharedSlugs(tables, databases)).count,
    claims: () => readClaims(shards),
    reportProjection: () => reportProjection({ ...dependencies, tables }),
  })

  const rewriteLoops = shards.map(
    shard => (signal: AbortSignal) => runRewriteLoop(shard, dependencies, signal),
  )

  const following = (signal: AbortSignal) => followGenerations({ ...dependencies, reader }, signal)
  const notes = {
    write: (note: ProjectorNote) => writeNote(tables, databases, run, note),
    onFailure: (error: Error) => logger.warn({ error: error.message }, 'the projector log was not written'),
    monotonicMs,
  }
  const decode = createDecoder(dependencies.schemaRegistry?.known)
  const faults = createFaultReport({ ...notes, warn: (found, message) => logger.warn(found, message) })
  const versions = createVersionCheck({
    ...dependencies,
    ...{ tables, decode },
    onCompared(found) {
      observer.onCompared(found)
      faults.note(versionFault(found))
    },
    onError: error => logger.debug({ error: error.message }, 'versions could not be compared'),
  })
  const lastRead = lastReadMs
    ? createLastRead({ ...dependencies, ...reader, ...positions, ...notes, intervalMs: lastReadMs })
    : undefined

  function noteMove(): void {
    movedAt = monotonicMs()
  }

  function onRetry(error: Error): void {
    // A loop that waits for another service is alive. Restarting the process would not bring that service back.
    noteMove()
    observer.onRetry(error instanceof SchemaRegistryError ? 'schemas' : 'ingest', error)
  }

  async function ingest(signal: AbortSignal): Promise<void> {
    const circuitBreaker = await openCircuitBreaker({ ...dependencies, tables, reader }, signal, onRetry)
    // A batch may need several long statements.
    const noted: Tables = {
      ...tables,
      insert: (insert, options) => tables.insert(insert, options).finally(noteMove),
    }
    return runProjector(
      {
        ...dependencies,
        reader,
        tables: noted,
        storeRejects: createRejectStore({
          ...{ tables: noted, databases, now: dependencies.now },
          keptMs: config.PLEDGEVIEW_REJECT_RETENTION_MS,
        }),
        decode,
        circuitBreaker,
        projector: run,
        settings: projectorSettings(config),
        events: {
          onWrite(batch) {
            // What is read again after a restore is older than what the ledger has. No producer did that.
            const isReadAgain = positions.restampBefore(batch.assignment, [...batch.positions.values()]) > 0
            versions.next(isReadAgain ? [] : batch.last)
          },
          onLogged(batch) {
            foldWorkers.noteBatch({ isUrgent: batch.eventsByTopic['api-keys'] > 0 || batch.isEndOfBacklog })
          },
          onBatch(batch, timing) {
            records += batch.records
            rejects += batch.rejects.length
            observer.onBatch(batch, timing)
            for (const [topic, { records, examples }] of batch.misplaced)
              faults.note({ kind: 'misplaced', detail: { topic, counts: { records }, examples } })
          },
          onRetry,
          onTurn: () => {
            noteMove()
            lastRead?.turn()
            faults.turn()
          },
        },
      },
      signal,
    )
  }

  /** The failure is known at once: the other works may take a while to end. */
  function noteFailure(work: (signal: AbortSignal) => Promise<void>): (signal: AbortSignal) => Promise<void> {
    return signal =>
      work(signal).catch(error => {
        failure ??= messageOf(error)
        throw error
      })
  }

  return {
    async run(signal: AbortSignal): Promise<void> {
      const works = [ingest, following, foldWorkers.run, ...rewriteLoops]
      try {
        await untilFirstFails(works.map(noteFailure), signal)
      } finally {
        await lastRead?.close()
        await versions.close()
        await faults.close()
      }
    },
    health: () => ({
      /** Ms since the ingest loop last moved: made a turn, got an answer of ClickHouse, or began to try again. */
      movedMsAgo: monotonicMs() - movedAt,
      /** If it has not moved for longer than this, it hangs. */
      stillMsMax: stillMsMaxOf(config),
      /** Why the projector stopped, or is stopping; `undefined` while it runs. */
      failure,
      /** Records that this run has written. */
      records,
      rejects,
    }),
    lag: () => reader.lag(),
    /** Brings the gauges up to date. It never throws. */
    async beforeScrape(): Promise<void> {
      // The leader reports them. This process may have led before.
      if (!reader.leads()) dependencies.metrics.quarantine.reset()
      await readGauges()
    },
    /** Whether every record of the log is folded. */
    async isDrained(): Promise<boolean> {
      // This costs nothing to ask. The current generation is read from the tables, and the lag from the log.
      if (!foldWorkers.isDone()) return false
      await follow()
      if (!foldWorkers.isDone() || positions.areSuperseded()) return false
      const lag = await reader.lag()
      return lag.every(({ committed, end }) => committed >= end) && foldWorkers.isDone()
    },
  }
}
