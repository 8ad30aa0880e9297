/** The positions of a projector in a test. */
import { expect, vi } from 'vitest'
import { openJournalReader } from '../../../services/log/local/journal.ts'
import type { LogState } from '../../../services/log/port.ts'
import {
  createPositions,
  type Positions,
  type PositionsPlace,
} from '../../../services/projector/positions/positions.ts'
import { noticeRestore } from '../../../services/projector/positions/restore.ts'
import type { Databases, Shard, Tables } from '../../../services/tables/port.ts'
import { column } from './fold-records.ts'
import { createProjector } from './running-projector.ts'

interface Place {
  tables: Tables
  databases: Databases
  cluster?: { shards: readonly Shard[] } | undefined
  warn?: (message: string) => void
}

export function positionsIn({ tables, databases, cluster, warn = () => {} }: Place): Positions {
  const shards = cluster?.shards ?? [{ tables, databases }]
  const notice = (place: PositionsPlace, state: LogState) => noticeRestore({ ...place, tables }, state)
  return createPositions({ databases, shards, now: Date.now, warn, notice })
}

// Only a hang takes this long. Each look is a query, and the fold loop looks every half second.
const soon = { timeout: 60_000, interval: 100 }
let runs = 0

/** A projector of a journal that reads on from its positions. It does not run yet. */
export async function projectorOf(journal: string, place: Place) {
  const { tables, databases, cluster } = place
  const positions = positionsIn(place)
  const reader = await openJournalReader(journal, { consumer: 'projector', starts: positions })
  const { service } = createProjector({
    ...{ reader, tables, databases, positions, run: `run-${++runs}` },
    ...(cluster && { shards: cluster.shards }),
    settings: { PLEDGEVIEW_BATCH_MS_MAX: '20' },
    // The leader writes the watermark once a second of this clock, and a projection waits for two of them.
    monotonicMs: () => 10 * performance.now(),
  })
  return { service, reader }
}

/** Projects a journal until it is folded and the watermark has moved. Resolves with the records that were read. */
export async function projectJournal(journal: string, place: Place): Promise<number> {
  const { service, reader } = await projectorOf(journal, place)
  const stop = new AbortController()
  const done = service.run(stop.signal)
  done.catch(() => {})
  const seen = new Set<number>()
  try {
    await vi.waitFor(async () => {
      expect(service.health().failure).toBeUndefined()
      expect(await service.isDrained()).toBe(true)
      seen.add(await watermarkIn(place))
      // The first one of a leader is remembered at once.
      expect(seen.size).toBeGreaterThan(1)
    }, soon)
  } finally {
    stop.abort()
    await done
    await reader.close()
  }
  return service.health().records
}

/** The watermark that lists show, Unix ms; 0 before the first. */
export async function watermarkIn({ tables, databases: { read } }: Place): Promise<number> {
  const query = `SELECT toUnixTimestamp64Milli(reached) AS value FROM ${read}.watermark`
  return Number((await column(tables, query))[0] ?? 0)
}

/** The tables of these databases that hold rows. */
export async function tablesOf(
  tables: Tables,
  databases: readonly string[],
): Promise<[database: string, name: string][]> {
  const rows = await tables.rows<{ database: string; name: string }>({
    query: `SELECT database, name FROM system.tables
            WHERE database IN ('${databases.join("','")}') AND engine LIKE '%MergeTree' AND name NOT LIKE 'backup_%'`,
  })
  return rows.map(({ database, name }) => [database, name])
}

/** Copies all tables of these databases, and returns what puts the copies back. */
export async function backUpTables(
  tables: Tables,
  databases: readonly string[],
): Promise<() => Promise<void>> {
  const names = await tablesOf(tables, databases)
  for (const [database, name] of names) {
    await tables.run({ query: `CREATE OR REPLACE TABLE ${database}.backup_${name} AS ${database}.${name}` })
    await tables.run({ query: `INSERT INTO ${database}.backup_${name} SELECT * FROM ${database}.${name}` })
  }
  return async () => {
    for (const [database, name] of names) {
      await tables.run({ query: `TRUNCATE TABLE ${database}.${name}` })
      await tables.run({ query: `INSERT INTO ${database}.${name} SELECT * FROM ${database}.backup_${name}` })
    }
  }
}
