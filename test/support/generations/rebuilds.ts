import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pino } from 'pino'
import { expect, vi } from 'vitest'
import type { ChangeEvent } from '../../../contracts/events/event.ts'
import { watchAttempts } from '../../../services/generations/attempts.ts'
import { type RebuildTables, showCurrent } from '../../../services/generations/context.ts'
import { createLivePositions } from '../../../services/generations/live-projector.ts'
import { runRebuild } from '../../../services/generations/rebuild.ts'
import type { RebuildRequest, RebuildState } from '../../../services/generations/rebuild-log.ts'
import { firstOffset } from '../../../services/log/local/file.ts'
import {
  openJournalHistory,
  openJournalReader,
  openJournalWriter,
} from '../../../services/log/local/journal.ts'
import { partitionName } from '../../../services/log/port.ts'
import { readPositions } from '../../../services/projector/positions/positions.ts'
import { sleep } from '../../../services/runtime/async/sleep.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import {
  followedDatabases,
  generationOf,
  readGenerations,
  standingGenerations,
} from '../../../services/tables/generation-log.ts'
import type { Shard, Statement, Tables } from '../../../services/tables/port.ts'
import { distributedDatabases } from '../../../services/tables/schema/cluster.ts'
import { apiKeyEvent, campaignEvent, newRecordOf, pledgeEvent } from '../events/sample-events.ts'
import { column } from '../projector/fold-records.ts'
import { hashBacker, type ModelTables } from '../projector/model-tables.ts'
import { startProjector as startRunningProjector } from '../projector/running-projector.ts'
import { wholeRequest } from './rebuild-request.ts'

export interface RebuildOptions extends Partial<RebuildRequest> {
  /** The tables that the rebuild uses. Default: the model's own. */
  tables?: Tables
  /** On a cluster: those of a shard. */
  tablesOfShard?: (shard: Shard) => Tables
  signal?: AbortSignal
  /** Runs when a phase begins, before its first statement. */
  onPhase?: (phase: RebuildState['phase']) => Promise<void>
  /** Default: true. */
  isAlone?: boolean
}

export type RebuildableModel = Awaited<ReturnType<typeof openRebuildable>>

const environment = {
  PLEDGEVIEW_BATCH_MS_MAX: '20',
  PLEDGEVIEW_BATCH_RECORDS_MAX: '500',
  PLEDGEVIEW_FOLD_CAMPAIGNS_MAX: '10',
}
const logger = pino({ level: 'silent' })

/** Opens it on fresh databases, with the live projector running. */
export async function openRebuildableModel(
  model: Pick<ModelTables, 'tables' | 'freshDatabases'>,
  options: { now?: () => number; hurry?: number } = {},
) {
  return openRebuildable({ tables: model.tables, databases: await model.freshDatabases() }, options)
}

/**
 * Opens it on migrated tables, with the live projector running. `now`: the own clock of the projector and of rebuilds. `hurry`: how much
 * faster the clock runs by which it gives an attempt up.
 */
export async function openRebuildable(
  { tables, databases: own, cluster: servers }: RebuildTables,
  {
    settings = {},
    now = Date.now,
    hurry = 1,
  }: { settings?: Readonly<Record<string, string>>; now?: () => number; hurry?: number } = {},
) {
  const config = readConfig({ ...environment, ...settings })
  const whole: typeof generationOf = (...of) => distributedDatabases(generationOf(...of))
  const [first] = servers?.shards ?? []
  const databases = first ? followedDatabases(first.databases, whole) : followedDatabases(own)
  await databases.follow(tables)
  const cluster = servers && {
    ...servers,
    shards: servers.shards.map(shard => ({ ...shard, databases: databases.ofShard })),
  }
  const directory = await mkdtemp(join(tmpdir(), 'pledgeview-rebuild-'))
  const journal = join(directory, 'journal.sqlite')
  const consumer = 'projector'
  const writer = await openJournalWriter(journal)
  const history = await openJournalHistory(journal, consumer)
  let runs = 0
  let stopProjector = async () => {}
  let isDrained = async () => true
  /** Why the projector that was started last has ended by itself. */
  let failure: unknown

  async function startProjector(): Promise<void> {
    const { signal } = new AbortController()
    const positions = createLivePositions({ tables, databases, cluster, config, logger, signal })
    const reader = await openJournalReader(journal, { consumer, starts: positions })
    const projector = startRunningProjector({
      ...{ reader, tables, databases, positions, config, now },
      run: `live-${++runs}`,
      ...(cluster && { shards: cluster.shards }),
      follow: () => databases.follow(tables),
      showViews: () => showCurrent({ tables, databases, cluster }),
      isGivenUp: watchAttempts({
        tables,
        base: databases.base,
        servers: (cluster?.shards ?? [{ tables }]).map(shard => shard.tables),
        monotonicMs: () => performance.now() * hurry,
        sleep,
      }),
      random: Math.random,
    })
    failure = undefined
    projector.done.catch(error => {
      failure = error
    })
    isDrained = projector.service.isDrained
    stopProjector = async () => {
      stopProjector = async () => {}
      await projector.stop()
      await reader.close()
    }
  }

  /** Resolves when this is so. Rejects with the reason if the projector has ended by itself. */
  async function until(isSo: () => boolean | Promise<boolean>, msMax = 60_000): Promise<void> {
    const isReached = () => {
      if (failure !== undefined) throw failure
      return isSo()
    }
    await vi.waitUntil(isReached, { timeout: msMax, interval: 25 })
  }

  await startProjector()
  return {
    tables,
    /** They follow which generation is current. */
    databases,
    cluster,
    until,
    /** The file of the event log. */
    journal,
    writer,
    append: (events: readonly ChangeEvent[]) => writer.append(events.map(newRecordOf)),
    /** Resolves when the live model has everything that was appended. Rejects with the reason if the projector has ended by itself. */
    async settled(): Promise<void> {
      const shards = cluster?.shards ?? [{ tables, databases }]
      const isFolded = async () => {
        if (!(await isDrained())) return false
        return !(await Promise.all(shards.map(isBehind))).includes(true)
      }
      await until(isFolded, settledMsMax)
    },
    /** Resolves when everything that was appended is in the live ledger. The fold may be paused. */
    async committed(): Promise<void> {
      const ends = await history.ends()
      const isCommitted = async () => {
        const { ofLog } = await readPositions(cluster?.shards ?? [{ tables, databases }], '')
        return ends.every(end => (ofLog.get(partitionName(end))?.next ?? firstOffset) >= end.next)
      }
      await until(isCommitted)
    },
    forget: history.forget,
    remembered: history.remembered,
    rebuild: ({
      tables: own = tables,
      tablesOfShard = (shard: Shard) => shard.tables,
      signal,
      onPhase = async () => {},
      isAlone = true,
      ...request
    }: RebuildOptions = {}) => {
      const noting = withPhases(onPhase)
      return runRebuild(
        {
          tables: noting(own),
          databases,
          cluster: cluster && {
            ...cluster,
            shards: cluster.shards.map(shard => ({ ...shard, tables: noting(tablesOfShard(shard)) })),
          },
          history,
          config,
          hashBacker,
          run: `rebuild-run-${++runs}`,
          isAlone,
          logger,
          onProgress: () => {},
          now,
          monotonicMs: () => performance.now(),
          random: Math.random,
          sleep,
        },
        { ...wholeRequest, ...request },
        signal ?? new AbortController().signal,
      )
    },
    startProjector,
    /** Stops the live projector. It can be started again. */
    stopProjector: () => stopProjector(),
    async close(): Promise<void> {
      await stopProjector()
      await history.close()
      await writer.close()
      await sleep(0)
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** On a busy machine a campaign may come into quarantine: its batch counts as folded before the campaign is. */
async function isBehind({ tables, databases }: Shard): Promise<boolean> {
  const query = `SELECT campaign_id AS value FROM ${databases.ledger}.quarantine FINAL WHERE is_quarantined`
  return (await column(tables, query)).length > 0
}

// Only a hang takes this long, also on a busy machine: a campaign that cannot be folded alone either is tried again after ten seconds.
const settledMsMax = 240_000

/** The phase of a rebuild that this statement records, if it is a heartbeat. */
export function phaseIn({ query, query_params }: Statement): RebuildState['phase'] | undefined {
  return query.includes("SELECT 'beat'") ? JSON.parse(String(query_params?.detail)).phase : undefined
}

/** Calls `onPhase` once for every phase that is recorded through any of these tables. */
function withPhases(onPhase: (phase: RebuildState['phase']) => Promise<void>): (tables: Tables) => Tables {
  let last: string | undefined
  return tables => ({
    ...tables,
    async run(statement, options) {
      await tables.run(statement, options)
      const phase = phaseIn(statement)
      if (phase === undefined || phase === last) return
      last = phase
      await onPhase(phase)
    },
  })
}

/**
 * Compacts the event log, as Kafka does when `delete.retention.ms` is over: a key keeps only its last record, and tombstones
 * are gone. The last record of a topic stays, because it says where the log ends.
 */
export function compactLog({ journal }: Pick<RebuildableModel, 'journal'>): void {
  const file = new DatabaseSync(journal)
  try {
    for (const table of ['records_campaigns', 'records_pledges', 'records_api_keys']) {
      file.exec(`DELETE FROM ${table} WHERE offset < (SELECT max(offset) FROM ${table})
        AND (value IS NULL OR offset NOT IN (SELECT max(offset) FROM ${table} GROUP BY key))`)
    }
  } finally {
    file.close()
  }
}

/**
 * Forgets all events, as a log does whose retention is over. The last record of a topic says where the log ends: it becomes a deletion of what
 * never was.
 */
export function emptyLog({ journal }: Pick<RebuildableModel, 'journal'>): void {
  const file = new DatabaseSync(journal)
  for (const [table, key] of [
    ['records_campaigns', 'gone'],
    ['records_pledges', 'gone/p'],
    ['records_api_keys', 'gone'],
  ] as const) {
    file.exec(`DELETE FROM ${table} WHERE offset < (SELECT max(offset) FROM ${table})`)
    file.prepare(`UPDATE ${table} SET key = ?, value = NULL`).run(Buffer.from(key))
  }
  file.close()
}

/** Campaigns with up to four pledges each, several versions of everything, some that are not public, and a key. */
export function platformHistory(campaigns: number): ChangeEvent[] {
  const events: ChangeEvent[] = [apiKeyEvent({ key: 'k', account_id: 'acc' })]
  for (let n = 0; n < campaigns; n++) {
    const campaign_id = `c${n}`
    events.push(campaignEvent({ campaign_id, version: 1, status: 'DRAFT' }))
    events.push(campaignEvent({ campaign_id, version: 2, status: n % 7 === 0 ? 'SUBMITTED' : 'LIVE' }))
    for (let p = 0; p < n % 5; p++) {
      events.push(pledgeEvent({ campaign_id, pledge_id: `p${p}`, backer_id: `b${(n + p) % 11}` }))
    }
  }
  return events
}

/** Whether it is the statement that stamps a new generation. The rebuild has read the log to its end then. */
export function isStamps(text: string): boolean {
  return /INSERT INTO \w+_read_\d+\.campaigns /.test(text) && text.includes('moved AS')
}

/** Whether it is the statement that makes a generation the current one. */
export function isPromotion(text: string): boolean {
  return /INSERT INTO \w+\.generation_log/.test(text) && text.includes("SELECT 'current'")
}

/** The public campaigns and their stamps, in the order of ids. */
export function stampsOf({ tables, databases }: Shard): Promise<{ id: string; at: string }[]> {
  return tables.rows({
    query: `SELECT campaign_id AS id, toString(updated_at) AS at FROM ${databases.views}.campaigns ORDER BY id`,
  })
}

/** The numbers of the generations whose databases are there: the log has to say the same. */
export async function generationsOf(model: RebuildableModel): Promise<number[]> {
  const found = await foundGenerations(model)
  const logged = await readGenerations({ tables: model.tables, base: model.databases.base })
  expect(standingGenerations(logged)).toEqual(found)
  return found
}

export async function foundGenerations({ tables, databases }: RebuildableModel): Promise<number[]> {
  const found = await column(
    tables,
    `SELECT toUInt32(extract(name, '[0-9]+$')) AS value FROM system.databases
     WHERE match(name, '^${databases.base}_ledger_[0-9]+$') ORDER BY value`,
  )
  return found.map(Number)
}
