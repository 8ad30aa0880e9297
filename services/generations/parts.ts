/**
 * The parts of a rebuild: on one server the tables themselves, on a cluster each shard's own part.
 *
 * On a cluster the log is read once, into the ledgers of all shards. Everything else is done for each shard as on one server: its fold, its
 * withdrawals, its verification and its stamps. A campaign is on one shard with all its pledges. The promotion is one row for all shards.
 */

import { promotionHolder } from '../projector/fold/fold-epochs.ts'
import { untilNoFoldRuns } from '../projector/fold/fold-leadership.ts'
import { createFoldWorker, type FoldWorker } from '../projector/fold/fold-worker.ts'
import { foldWorkerSettings } from '../projector/settings.ts'
import { type Patience, patientTables } from '../tables/clickhouse/patient.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { onHalfTheCores } from './build/half-the-cores.ts'
import type { Sides } from './build/ledgers.ts'
import { createWithdrawals, type Withdrawals } from './build/withdrawals.ts'
import { serversOf } from './cluster.ts'
import type { RebuildDependencies } from './context.ts'

export interface RebuildPart extends Sides {
  /** They retry statements, and use half of ClickHouse's cores. */
  tables: Tables
  /** The same tables with all cores, for statements that the fold waits for. */
  tablesOnAllCores: Tables
  /** Of the new generation. */
  foldWorker: FoldWorker
  /** Holds the fold of the current generation. */
  hold: FoldWorker
  withdrawals: Withdrawals
  /** When the new generation had everything that the log had then, by ClickHouse's clock, Unix ms. */
  since: number
}

// Nothing reads the new generation, so its statements may take long.
const buildMsMax = 30 * 60_000
// How long a statement of the fold may still run when it is held.
const foldEndsMsMax = 60_000

export async function createParts(
  dependencies: RebuildDependencies,
  { attempt, from, to }: { attempt: number; from: number; to: number },
  patience: Patience,
): Promise<RebuildPart[]> {
  const { run, config, random, sleep, monotonicMs } = dependencies
  const time = { monotonicMs, sleep }
  const settings = foldWorkerSettings(config)
  const before = serversOf(dependencies, from)
  return Promise.all(
    serversOf(dependencies, to).map(async ({ tables: own, databases: rebuilt }, index) => {
      const live = (before[index] as (typeof before)[number]).databases
      const tablesOnAllCores = patientTables(own, patience)
      const tables = await onHalfTheCores(tablesOnAllCores)
      const worker = { ...time, random, isAttempt: true }
      return {
        live,
        rebuilt,
        tables,
        tablesOnAllCores,
        foldWorker: createFoldWorker({
          ...worker,
          tables,
          databases: rebuilt,
          holder: run,
          settings: { ...settings, foldMsMax: buildMsMax },
          untilNoneRuns: () => untilNoFoldRuns(tables, rebuilt, { ...time, msMax: buildMsMax }),
          epochFloor: () => highestEpoch(tables, live),
          stampsFrom: live.read,
        }),
        hold: createFoldWorker({
          ...worker,
          tables: tablesOnAllCores,
          databases: live,
          holder: promotionHolder(attempt),
          settings,
          untilNoneRuns: () => untilNoFoldRuns(tables, live, { ...time, msMax: foldEndsMsMax }),
        }),
        withdrawals: createWithdrawals({ tables, live, rebuilt, run }),
        since: 0,
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
