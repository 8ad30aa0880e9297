/** How the fold finds the batches that came after the last one: all of them, and without reading the others. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type PendingRun,
  pendingBatchesStatement,
  readLongRuns,
  readPending,
  readUnfolded,
  recordFoldedStatement,
} from '../../../../services/projector/fold/fold-progress.ts'
import {
  foldCampaignsStatement,
  touchedCampaigns,
} from '../../../../services/projector/fold/fold-statements.ts'
import { readRecentBatches } from '../../../../services/projector/ingest/reject-circuit-breaker.ts'
import { createUnfolded } from '../../../../services/projector/waiting.ts'
import { readConfig } from '../../../../services/runtime/config.ts'
import { statementForm } from '../../../../services/tables/clickhouse/statements.ts'
import type { Databases, Statement } from '../../../../services/tables/port.ts'
import { campaignEvent } from '../../../support/events/sample-events.ts'
import { lead, stepOf } from '../../../support/projector/fold-records.ts'
import { createIngest, createTestFoldWorker } from '../../../support/projector/model-tables.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'

const tables = useModelTables()

/** Batches of projectors p0, p1, ... Each touches one campaign, which is named after it. */
async function writeBatches(
  { ledger }: Databases,
  { projectors, from = 0, to }: { projectors: number; from?: number; to: number },
): Promise<void> {
  await tables.tables.run({
    query: `INSERT INTO ${ledger}.batch_log (projector, sequence, campaign_ids, oldest_at)
            SELECT concat('p', toString(number % {projectors:UInt32})) AS projector,
              intDiv(number, {projectors:UInt32}) + {from:UInt64} + 1 AS sequence,
              [concat(projector, ' ', toString(sequence))], now64(3, 'UTC')
            FROM numbers({rows:UInt64}) SETTINGS async_insert = 0`,
    query_params: { projectors, from, rows: projectors * (to - from) },
  })
}

async function writeProgress({ ledger }: Databases, folded: Record<string, number>): Promise<void> {
  await tables.tables.run({ query: `TRUNCATE TABLE ${ledger}.fold_progress` })
  const names = Object.keys(folded)
  if (names.length === 0) return
  await tables.tables.run({
    query: `INSERT INTO ${ledger}.fold_progress (projector, sequence, fold_id)
            SELECT name, sequence, 1 FROM
              (SELECT arrayJoin(arrayZip({names:Array(String)}, {sequences:Array(UInt64)})) AS row, row.1 AS name, row.2 AS sequence)
            SETTINGS async_insert = 0`,
    query_params: { names, sequences: Object.values(folded) },
  })
}

describe('the fold', () => {
  // More projectors with many batches than the condition names one by one.
  const projectors = 310
  const from = 30_000
  const to = 30_012

  test('finds every batch after its progress, and no other, whichever long runs it knows', async () => {
    const databases = await tables.freshDatabases()
    await lead(tables.tables, databases)
    await writeBatches(databases, { projectors, from, to })
    const names = Array.from({ length: projectors }, (_, n) => `p${n}`)
    const sequence = fc.oneof(fc.nat({ max: 100 }), fc.integer({ min: from - 2, max: to + 2 }))
    const anyProgress = fc.dictionary(fc.constantFrom(...names, 'gone'), sequence, {
      maxKeys: projectors,
      size: 'max',
    })
    let steps = 0
    const check = async (folded: Record<string, number>) => {
      await writeProgress(databases, folded)
      const lastOf = (name: string) => Math.max(from, folded[name] ?? 0)
      const after = names.filter(name => lastOf(name) < to)
      const campaigns = after.flatMap(name =>
        Array.from({ length: to - lastOf(name) }, (_, n) => `${name} ${to - n}`),
      )
      const unfolded = await readUnfolded(tables.tables, databases)
      expect(new Map(unfolded.map(({ projector, first, last }) => [projector, [first, last]]))).toEqual(
        new Map(after.map(name => [name, [lastOf(name) + 1, to]])),
      )
      const longRuns = await readLongRuns(tables.tables, databases)
      const found: string[] = []
      // A fold takes so many runs at once.
      for (let pending = await readPending(tables.tables, databases, longRuns); pending; ) {
        const { runs, batches } = pending
        const touched = { foldId: 1n, runs, longRuns, hasQuarantine: false, isAgain: false }
        const ids = await tables.tables.rows<{ campaign_id: string }>(touchedCampaigns(databases, touched))
        expect(ids).toHaveLength(batches)
        found.push(...ids.map(row => row.campaign_id))
        await tables.tables.run(recordFoldedStatement(databases, stepOf(++steps), { runs, elapsedMs: 1 }))
        pending = await readPending(tables.tables, databases, longRuns)
      }
      expect(found.toSorted()).toEqual(campaigns.toSorted())
      expect(await readUnfolded(tables.tables, databases)).toEqual([])
    }
    await fc.assert(fc.asyncProperty(anyProgress, check), { numRuns: 5 })
    await check({})
    await check(Object.fromEntries(names.map(name => [name, to])))
  })

  test.each([
    { what: 'that are folded', projectors: 3, each: 100_000 },
    { what: 'of many runs that have ended', projectors: 100, each: 40_000 },
  ])('does not read the batches $what', async ({ projectors, each }) => {
    const databases = await tables.freshDatabases()
    await lead(tables.tables, databases)
    await writeBatches(databases, { projectors, to: each })
    // As the log of a month is: its old parts are merged, and a run's batches stand together.
    await tables.tables.run({ query: `OPTIMIZE TABLE ${databases.ledger}.batch_log FINAL` })
    const names = Array.from({ length: projectors }, (_, n) => `p${n}`)
    await writeProgress(databases, { ...Object.fromEntries(names.map(name => [name, each])), p0: each - 2 })
    const longRuns = await readLongRuns(tables.tables, databases)
    const runs: readonly PendingRun[] = [['p0', each - 2, each]]
    const touched = { foldId: 1n, runs, longRuns, hasQuarantine: false, isAgain: false }
    const looks: Record<string, Statement> = {
      pending: pendingBatchesStatement(databases, longRuns),
      fold: foldCampaignsStatement(databases, stepOf(2), touched),
    }
    for (const [name, look] of Object.entries(looks)) {
      // The block of rows at the end of each run's batches, and one beside it.
      const read = await rowsRead(look)
      expect(read, name).toBeLessThanOrEqual(projectors * 2 * blockRows + blockRows)
      expect(read, name).toBeGreaterThan(0)
    }
  })
})

test('what waits in the current generation is known at the first look after a promotion, although the last one was folded further', async () => {
  const [before, after] = [await tables.freshDatabases(), await tables.freshDatabases()]
  await writeProgress(before, { p0: 30_000 })
  await writeBatches(after, { projectors: 1, from: 29_990, to: 30_000 })
  const databases = { ...before }
  const unfolded = createUnfolded([{ ...tables, databases }], () => undefined, {
    monotonicMs: () => performance.now(),
  })
  await unfolded.read()
  expect(unfolded.waitsSince()).toBeUndefined()
  Object.assign(databases, after)
  await unfolded.read()
  expect(unfolded.waitsSince()).toBeTypeOf('number')
})

test('the progress stays at one row for each run of a projector, however often it folds', async () => {
  const databases = await tables.freshDatabases()
  await lead(tables.tables, databases)
  for (let fold = 0; fold < 20; fold++) {
    await writeBatches(databases, { projectors: 3, from: fold, to: fold + 1 })
    const runs = (await readPending(tables.tables, databases, []))?.runs ?? []
    await tables.tables.run(recordFoldedStatement(databases, stepOf(fold), { runs, elapsedMs: 1 }))
  }
  await tables.tables.run({ query: `OPTIMIZE TABLE ${databases.ledger}.fold_progress FINAL` })
  const rows = await tables.tables.rows({
    query: `SELECT projector, sequence FROM ${databases.ledger}.fold_progress ORDER BY projector`,
  })
  expect(rows).toEqual(['p0', 'p1', 'p2'].map(projector => ({ projector, sequence: 20 })))
})

test('thousands of runs within 30 days, as of a projector that is started again and again, are folded in parts that a parameter has room for', async () => {
  const databases = await tables.freshDatabases()
  const { base, ledger } = databases
  const runs = 4_000
  await tables.tables.run({
    query: `INSERT INTO ${ledger}.batch_log (projector, sequence, events, positions)
            SELECT concat('projector-', toString(generateUUIDv4(number))), 1, 1, [('pledges', 0, number)] FROM numbers({runs:UInt32})
            SETTINGS async_insert = 0`,
    query_params: { runs },
  })
  await tables.tables.run({
    query: `INSERT INTO ${base}.projector_log (projector, kind, detail)
            SELECT projector, 'started', '{"rejectShareMax":0.5}' FROM ${ledger}.batch_log SETTINGS async_insert = 0`,
  })
  const config = readConfig({ PLEDGEVIEW_REJECT_SHARE_MAX: '0.5' })
  const recent = (log: string) =>
    readRecentBatches(tables.tables, databases, { log, partitions: ['pledges/0'] }, config)
  expect(await recent('')).not.toEqual([])
  // Offsets of another log say nothing about this one.
  expect(await recent('another')).toEqual([])
  const { foldWorker } = createTestFoldWorker(tables.tables, databases)
  await foldWorker.acquireLeadership()
  await foldWorker.fold()
  await createIngest(tables.tables, databases)([campaignEvent({ campaign_id: 'a' })])
  expect(await foldWorker.fold()).toMatchObject({ campaigns: 1 })
  expect(await readUnfolded(tables.tables, databases)).toEqual([])
})

// ClickHouse reads whole blocks of rows.
const blockRows = 8_192

/** How many rows the statement read, as ClickHouse counted them. */
async function rowsRead({ query, query_params = {} }: Statement): Promise<number> {
  const { url, user, password } = tables.clickHouse
  const { body, contentType } = statementForm(query, query_params, 'boundary')
  const response = await fetch(`${url}/?wait_end_of_query=1`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
      'content-type': contentType,
    },
    body,
  })
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  const { read_rows } = JSON.parse(response.headers.get('x-clickhouse-summary') ?? '{}')
  return Number(read_rows)
}

test('batches are of a backlog if their events were old when they were read, and not if they only waited for a fold', async () => {
  // How old the event was when its batch was written, and how long ago that was, seconds.
  for (const [age, isOfBacklog] of [
    [{ event: 5, batch: 3_600 }, 0],
    [{ event: 15, batch: 0 }, 1],
    [{ event: 15, batch: 3_600 }, 1],
  ] as const) {
    const databases = await tables.freshDatabases()
    await tables.tables.run({
      query: `INSERT INTO ${databases.ledger}.batch_log (projector, sequence, campaign_ids, appended_at, oldest_at)
              SELECT 'old', 1, ['a'], now64(3, 'UTC') - toIntervalSecond({batch:UInt32}) AS at, at - toIntervalSecond({event:UInt32})
              SETTINGS async_insert = 0`,
      query_params: age,
    })
    expect(await readPending(tables.tables, databases, [])).toMatchObject({ batches: 1, isOfBacklog })
    await tables.giveBack(databases)
  }
})
