/** What the steps of a rebuild share: where the generations stand, and what is done for each shard. */
import type { History } from '../log/port.ts'
import type { SchemaRegistry } from '../log/registry/schema-registry.ts'
import { buildHolder, promotionHolder } from '../projector/fold/fold-epochs.ts'
import { untilNoFoldRuns } from '../projector/fold/fold-leadership.ts'
import { createFoldWorker } from '../projector/fold/fold-worker.ts'
import { isRefused } from '../projector/fold/line.ts'
import type { HashBacker } from '../projector/ingest/backer-hash.ts'
import type { Positions } from '../projector/positions/positions.ts'
import type { Config } from '../runtime/config.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { type Patience, patientTables } from '../tables/clickhouse/patient.ts'
import {
  type GenerationLog,
  generationOf,
  type LoggedGeneration,
  readCurrent,
} from '../tables/generation-log.ts'
import type { CallOptions, Databases, Shard, Tables } from '../tables/port.ts'
import { distributedDatabases } from '../tables/schema/cluster.ts'
import { createGeneration } from '../tables/schema/migrate.ts'
import { definerUser } from '../tables/schema/roles.ts'
import type { MigrateOptions } from '../tables/schema/sql-files.ts'
import { areViewsOf, pointViews } from '../tables/schema/views.ts'
import { onEveryShard } from '../tables/shards.ts'
import { noteDropped } from './attempts.ts'
import type { RebuildState, RebuildTracker, WorkPhase } from './rebuild-log.ts'
import { createWithdrawals, type Look } from './withdrawals.ts'

export interface RebuildDependencies
  extends RebuildTables,
    Pick<Runtime, 'now' | 'monotonicMs' | 'random' | 'sleep' | 'logger'> {
  history: History
  config: Config
  hashBacker: HashBacker
  schemaRegistry?: SchemaRegistry | undefined
  /** Names this run; unique. */
  run: string
  /** Whether no other process can work on these tables. */
  isAlone: boolean
  onProgress: (state: RebuildState) => void
}

/** A running rebuild. Its `tables` retry statements, and use half of ClickHouse's cores. */
export interface RebuildContext extends RebuildDependencies {
  tables: Tables
  generationLog: GenerationLog
  /** The generation that was current when it began. */
  from: number
  shards: readonly RebuildShard[]
  /** The generation that is built, over all shards. */
  rebuilt: Databases
  tracker: RebuildTracker
  positions: Positions
  signal: AbortSignal
}

/** Begins a phase. Throws if the rebuild was stopped, and `AttemptLost` if another process took over. */
export async function enter({ tracker, signal }: RebuildContext, phase: WorkPhase): Promise<void> {
  signal.throwIfAborted()
  await tracker.enter(phase)
  signal.throwIfAborted()
}

/* Where the databases of generations are: on one server, or on the shards of a cluster. */

/** The tables that a rebuild works on. On a cluster `tables` and `databases` are those over all shards. */
export interface RebuildTables extends Shard {
  /** `name`: in `remote_servers`. */
  cluster?: { name: string; shards: readonly Shard[] } | undefined
}

/** The servers, each with the databases of a generation as it has them. */
export function serversOf(
  { tables, databases, cluster }: RebuildTables,
  generation: number,
): readonly Shard[] {
  const servers = cluster?.shards ?? [{ tables, databases }]
  return servers.map(server => ({ ...server, databases: generationOf(server.databases, generation) }))
}

/** The databases of a generation, over all shards. */
export function wholeOf(place: RebuildTables, generation: number): Databases {
  const { databases } = firstServer(place, generation)
  return place.cluster ? distributedDatabases(databases) : databases
}

function firstServer(place: RebuildTables, generation: number): Shard {
  const [server] = serversOf(place, generation)
  if (!server) throw new Error('the cluster has no shards')
  return server
}

/** The server with the generation log: the first shard of the cluster, whatever the order of the URLs is. */
export async function generationLogOf({ tables, databases, cluster }: RebuildTables): Promise<GenerationLog> {
  if (!cluster) return { tables, base: databases.base }
  for (const shard of cluster.shards) {
    const found = await shard.tables.rows({
      query: 'SELECT 1 FROM system.clusters WHERE cluster = {name:String} AND shard_num = 1 AND is_local',
      query_params: { name: cluster.name },
    })
    if (found.length > 0) return { tables: shard.tables, base: shard.databases.base }
  }
  throw new Error(
    `no URL leads to the first shard of ${cluster.name}: add it to PLEDGEVIEW_CLICKHOUSE_SHARD_URLS`,
  )
}

/** Makes the databases of a generation, or what is missing of them. */
export async function makeGeneration(place: RebuildTables, generation: number): Promise<void> {
  const { tables, databases, options } = await definitionOf(place, generation)
  await createGeneration(tables, databases, options)
}

const pointingsMax = 5

/**
 * Points the data teams' views at the current generation, if one of them shows another. Several processes may do this at once, so it checks
 * again afterwards: another process may have pointed them at the generation before.
 */
export async function showCurrent(place: RebuildTables): Promise<void> {
  for (let pointings = 0; pointings <= pointingsMax; pointings++) {
    const current = await readCurrent(place.tables, place.databases.base)
    const { tables, databases, options } = await definitionOf(place, current)
    const servers = serversOf(place, current)
    const areShown = await onEach(servers, server => areViewsOf(server.tables, databases, options))
    if (!areShown.includes(false)) return
    await pointViews(tables, databases, options)
  }
  throw new Error('other processes make the views at the same time')
}

/** The views read as they did before. */
async function definitionOf(place: RebuildTables, generation: number) {
  const { cluster } = place
  const { tables, databases } = firstServer(place, generation)
  const [known] = await tables.rows<{ hasDefiner: boolean }>({
    query: `SELECT countIf(name = 'revoked_keys' AND position(create_table_query, 'DEFINER = ${definerUser}') > 0) > 0 AS hasDefiner
            FROM system.tables WHERE database = {base:String}`,
    query_params: { base: databases.base },
  })
  const options: MigrateOptions = {
    ...(cluster && { cluster: cluster.name }),
    ...(known?.hasDefiner && { viewsDefiner: definerUser }),
  }
  return { tables: cluster ? onEveryShard(cluster.shards) : tables, databases, options }
}

/** Notes that a generation is dropped, then drops it. Throws `AttemptLost` if it is the current one, or if another process took over. */
export async function dropGeneration(
  { generationLog, run, ...place }: RebuildTables & Pick<RebuildContext, 'generationLog' | 'run'>,
  attempt: number,
  generation: number,
): Promise<void> {
  await noteDropped(generationLog, { attempt, run, generation })
  await dropDatabases(place, generation)
}

/** Drops the databases of a generation, if they are there. It has to be noted as dropped before. */
export async function dropDatabases(place: RebuildTables, generation: number): Promise<void> {
  await onEach(serversOf(place, generation), async ({ tables, databases }) => {
    const whole = distributedDatabases(databases)
    const names = [databases.read, databases.ledger, ...(place.cluster ? [whole.read, whole.ledger] : [])]
    for (const name of names) await tables.run({ query: `DROP DATABASE IF EXISTS ${name} SYNC` })
  })
}

/** The generations that are noted as dropped, and of which databases still stand: their drop was interrupted. */
export function halfDropped(place: RebuildTables, all: readonly LoggedGeneration[]): Promise<number[]> {
  const dropped = all.filter(({ isDropped }) => isDropped).map(({ number }) => number)
  return withDatabases(place, dropped, 'some')
}

/**
 * Those of which databases stand on every server, or on some, whatever the log says: a backup may have only the current generation, and
 * one shard may have been restored alone.
 */
export async function withDatabases(
  place: RebuildTables,
  numbers: readonly number[],
  on: 'every' | 'some' = 'every',
): Promise<number[]> {
  const standing = await onEach(serversOf(place, 0), ({ tables }) =>
    tables.rows<{ name: string }>({ query: 'SELECT name FROM system.databases' }),
  )
  const names = standing.map(rows => new Set(rows.map(({ name }) => name)))
  return numbers.filter(number =>
    serversOf(place, number)[on](({ databases }, at) =>
      [databases, distributedDatabases(databases)].some(
        ({ ledger, read }) => names[at]?.has(ledger) || names[at]?.has(read),
      ),
    ),
  )
}

/** Runs the work side by side. When all of it has ended, throws the first failure. */
export async function onEach<One, Result>(
  all: readonly One[],
  work: (one: One, index: number) => Promise<Result>,
): Promise<Result[]> {
  const ended = await Promise.allSettled(all.map(work))
  return ended.map(one => {
    if (one.status === 'rejected') throw one.reason
    return one.value
  })
}

/*
 * The shards of a rebuild: on one server there is one, which is the tables themselves.
 *
 * On a cluster the log is read once, into the ledgers of all shards. Everything else is done for each shard as on one server: its fold, its
 * withdrawals, its verification and its stamps. A campaign is on one shard with all its pledges. The promotion is one row for all shards.
 */

export type RebuildShard = Awaited<ReturnType<typeof createShards>>[number]

// Nothing reads the new generation, so its statements may take long.
const buildMsMax = 30 * 60_000
// How long a statement of the fold may still run when it is held.
const foldEndsMsMax = 60_000

export async function createShards(
  dependencies: RebuildDependencies,
  { attempt, generation, from }: Pick<RebuildState, 'attempt' | 'generation'> & { from: number },
  patience: Patience,
) {
  const { run, config, history, random, sleep, monotonicMs, now } = dependencies
  const time = { monotonicMs, sleep }
  return Promise.all(
    serversOf(dependencies, generation).map(async ({ tables: own, databases: rebuilt }, index) => {
      const live = generationOf(rebuilt, from)
      const tablesOnAllCores = patientTables(own, patience)
      const tables = await onHalfTheCores(tablesOnAllCores)
      const unlessRefused = patientTables(own, { ...patience, isRepeated: error => !isRefused(error) })
      const worker = { ...time, random, now, attempt }
      return {
        live,
        rebuilt,
        /** They retry statements, and use half of ClickHouse's cores. */
        tables,
        /** The same tables with all cores, for statements that the fold waits for. */
        tablesOnAllCores,
        /** Of the new generation. */
        foldWorker: createFoldWorker({
          ...worker,
          tables,
          runPiece: (await onHalfTheCores(unlessRefused)).run,
          databases: rebuilt,
          holder: buildHolder(attempt),
          config: { ...config, PLEDGEVIEW_FOLD_MS_MAX: buildMsMax },
          untilNoneRuns: () => untilNoFoldRuns(tables, rebuilt, { ...time, msMax: buildMsMax }),
          epochFloor: () => highestEpoch(tables, live),
          stampsFrom: live.read,
        }),
        /** Holds the fold of the current generation. */
        hold: createFoldWorker({
          ...worker,
          tables: tablesOnAllCores,
          databases: live,
          holder: promotionHolder(attempt),
          config,
          // It remembers nothing, and begins no lower than what lists have shown: the tables may be restored ones.
          rememberWatermark: async () => (await history.remembered()).watermark,
          untilNoneRuns: () => untilNoFoldRuns(tables, live, { ...time, msMax: foldEndsMsMax }),
        }),
        carryWithdrawals: createWithdrawals(tables, { live, rebuilt }, `${run}-${index}`),
        /** The new generation's batches when it had everything that the log had. What comes later is verified under the held fold. */
        compared: { at: 0, runs: [], lasts: [] } as Look,
      }
    }),
  )
}

/** What the fold of one generation writes ranks above what that of the other wrote to the same tables. */
async function highestEpoch(tables: Tables, { ledger }: Databases): Promise<bigint> {
  const [row] = await tables.rows<{ epoch: string }>({
    query: `SELECT toString(max(epoch)) AS epoch FROM ${ledger}.fold_epochs`,
  })
  return BigInt(row?.epoch ?? '0')
}

/*
 * Tables whose statements use at most half of ClickHouse's cores. A rebuild folds and verifies for as long as it takes, and the
 * API's queries need a core without waiting for it.
 */

/** Asks ClickHouse for its cores once. Throws what the tables throw. */
export async function onHalfTheCores(tables: Tables): Promise<Tables> {
  // The default of `max_threads` is the number of cores that the server may use.
  const [row] = await tables.rows<{ cores: number }>({
    query: "SELECT toUInt32(getSetting('max_threads')) AS cores",
  })
  const threadsMax = Math.max(1, Math.floor((row?.cores ?? 1) / 2))
  const bounded = (options?: CallOptions): CallOptions => ({ threadsMax, ...options })
  return {
    ...tables,
    rows: (statement, options) => tables.rows(statement, bounded(options)),
    run: (statement, options) => tables.run(statement, bounded(options)),
  }
}
