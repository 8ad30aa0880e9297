/** How the fold finds the batches that came after the last one: all of them, and without reading the others. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  pendingBatchesStatement,
  pendingKeysStatement,
} from '../../../../services/projector/fold/batch-log-statements.ts'
import { readPending, readPendingKeys } from '../../../../services/projector/fold/fold-progress.ts'
import {
  type BatchRange,
  type Progress,
  touchedCampaigns,
} from '../../../../services/projector/fold/fold-statements.ts'
import type { Databases, Statement } from '../../../../services/shared/tables/port.ts'
import { type ModelTables, openModelTables } from '../../../support/model-tables.ts'

let tables: ModelTables

beforeAll(async () => {
  tables = await openModelTables()
})

afterAll(() => tables.dispose())

/** Batches of projectors p0, p1, ... Each touches one campaign, which is named after it; each tenth one has a key. */
async function writeBatches(
  { model }: Databases,
  { projectors, from = 0, to }: { projectors: number; from?: number; to: number },
): Promise<void> {
  await tables.tables.run({
    query: `INSERT INTO ${model}.batch_log (projector, sequence, keys, campaign_ids, oldest_at)
            SELECT concat('p', toString(number % {projectors:UInt32})) AS projector,
              intDiv(number, {projectors:UInt32}) + {from:UInt64} + 1 AS sequence, sequence % 10 = 0,
              [concat(projector, ' ', toString(sequence))], now64(3, 'UTC')
            FROM numbers({rows:UInt64}) SETTINGS async_insert = 0`,
    query_params: { projectors, from, rows: projectors * (to - from) },
  })
}

async function touchedIn(databases: Databases, range: BatchRange): Promise<string[]> {
  const { query, parameters } = touchedCampaigns(databases, range)
  const rows = await tables.tables.rows<{ campaign_id: string }>({ query, query_params: parameters })
  return rows.map(row => row.campaign_id).toSorted()
}

describe('the fold', () => {
  // More projectors with many batches than the condition names one by one.
  const projectors = 310
  const from = 30_000
  const to = 30_012

  test('finds every batch after its progress, and no other, whichever projectors it knows', async () => {
    const databases = await tables.freshDatabases()
    await writeBatches(databases, { projectors, from, to })
    const names = Array.from({ length: projectors }, (_, n) => `p${n}`)
    const sequence = fc.oneof(fc.nat({ max: 100 }), fc.integer({ min: from - 2, max: to + 2 }))
    const anyProgress = fc.dictionary(fc.constantFrom(...names, 'gone'), sequence, {
      maxKeys: projectors,
      size: 'max',
    })
    const check = async (folded: Progress) => {
      const lastOf = (name: string) => Math.max(from, folded[name] ?? 0)
      const after = names.filter(name => lastOf(name) < to)
      const pending = await readPending(tables.tables, databases, folded)
      expect(pending?.to ?? {}).toEqual(Object.fromEntries(after.map(name => [name, to])))
      const withKeys = names.filter(name => lastOf(name) < from + 10)
      const keys = await readPendingKeys(tables.tables, databases, folded)
      expect(keys ?? {}).toEqual(Object.fromEntries(withKeys.map(name => [name, from + 10])))
      if (!pending) return
      const campaigns = after.flatMap(name =>
        Array.from({ length: to - lastOf(name) }, (_, n) => `${name} ${to - n}`),
      )
      expect(await touchedIn(databases, pending)).toEqual(campaigns.toSorted())
    }
    await fc.assert(fc.asyncProperty(anyProgress, check), { numRuns: 5 })
    await check({})
    await check(Object.fromEntries(names.map(name => [name, to])))
  })

  test('does not read the batches that are folded', async () => {
    const databases = await tables.freshDatabases()
    const each = 100_000
    await writeBatches(databases, { projectors: 3, to: each })
    const folded = { p0: each - 2, p1: each, p2: each - 1 }
    const pending = await readPending(tables.tables, databases, folded)
    expect(pending?.to).toEqual({ p0: each, p2: each })
    const { query, parameters } = touchedCampaigns(databases, pending ?? { from: {}, to: {} })
    const looks: Statement[] = [
      pendingBatchesStatement(databases, folded),
      pendingKeysStatement(databases, folded),
      { query, query_params: parameters },
    ]
    // The block of rows at the end of each projector's batches, and one beside it.
    for (const look of looks) {
      const rows = await rowsRead(look)
      expect(rows).toBeLessThanOrEqual(3 * 2 * blockRows)
      expect(rows).toBeGreaterThan(0)
    }
  })

  test('does not read the batches of many runs that have ended', async () => {
    const databases = await tables.freshDatabases()
    const runs = 100
    const each = 40_000
    await tables.tables.run({
      query: `INSERT INTO ${databases.model}.batch_log (projector, sequence)
              SELECT concat('run ', toString(intDiv(number, {each:UInt64}))), number % {each:UInt64} + 1
              FROM numbers({rows:UInt64}) SETTINGS async_insert = 0`,
      query_params: { each, rows: runs * each },
    })
    const folded = Object.fromEntries(Array.from({ length: runs }, (_, n) => [`run ${n}`, each]))
    for (const look of [
      pendingBatchesStatement(databases, folded),
      pendingKeysStatement(databases, folded),
    ]) {
      expect(await tables.tables.rows(look)).toEqual([])
      expect(await rowsRead(look)).toBeLessThanOrEqual(runs * 2 * blockRows)
    }
  })
})

// ClickHouse reads whole blocks of rows.
const blockRows = 8_192

/** How many rows of the table the statement reads. */
async function rowsRead(look: Statement): Promise<number> {
  const parts = await tables.tables.rows<{ rows: number }>({
    ...look,
    query: `EXPLAIN ESTIMATE ${look.query}`,
  })
  return parts.reduce((sum, part) => sum + part.rows, 0)
}
