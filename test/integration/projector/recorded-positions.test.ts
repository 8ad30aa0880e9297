/** What the tables have of each partition, read from ClickHouse. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { batchLogInsert, emptyBatch } from '../../../services/projector/ingest/batch.ts'
import { writeNote } from '../../../services/projector/projector-log.ts'
import {
  behindOf,
  type Claim,
  findBehindIn,
  noteBeginning,
} from '../../../services/projector/recorded-positions.ts'
import type { Position } from '../../../services/shared/event-log/port.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { createIngest, hashBacker, type ModelTables, openModelTables } from '../../support/model-tables.ts'
import { recordedOf } from '../../support/recorded-claims.ts'
import { campaignEvent } from '../../support/sample-events.ts'

const group = 'projectors'
let model: ModelTables
let databases: Databases
let batches = 0

beforeAll(async () => {
  model = await openModelTables()
})

afterAll(() => model.dispose())

beforeEach(async () => {
  databases = await model.freshDatabases()
  return () => model.drop(databases)
})

const pledges = (partition: number, next: number): Position => ({ topic: 'pledges', partition, next })

async function logBatch(...positions: Position[]): Promise<void> {
  const batch = emptyBatch('test', hashBacker)
  for (const at of positions) batch.positions.set(`${at.topic}/${at.partition}`, at)
  await model.tables.insert(batchLogInsert(batch, databases, { projector: 'run', sequence: ++batches }))
}

/** A note of an earlier version has no positions. */
async function note(positions?: Position[], of = group): Promise<void> {
  const detail = { partitions: ['pledges/0'], msAgo: 0, ...(positions && { positions, group: of }) }
  await writeNote(model.tables, databases, 'run', { kind: 'present', detail })
}

/** Writes claims with their ages. Hour 200 is now. */
async function write(claims: readonly (Claim & { isNote: boolean })[]): Promise<void> {
  const rows = (isNote: boolean) =>
    claims
      .filter(claim => claim.isNote === isNote)
      .map(({ place, next, hour }, index) => {
        const partition = Number(place.slice(-1))
        const at = `now64(3, 'UTC') - INTERVAL ${200 - hour} HOUR`
        if (!isNote) return `('run', ${index}, [('pledges', ${partition}, ${next})], ${at})`
        const detail = JSON.stringify({ positions: [pledges(partition, next)], group })
        return `('run', 'present', '${detail}', ${at})`
      })
      .join(', ')
  const { model: database } = databases
  await model.tables.run({ query: `TRUNCATE TABLE ${database}.batch_log` })
  await model.tables.run({ query: `TRUNCATE TABLE ${database}.projector_log` })
  const [batchRows, noteRows] = [rows(false), rows(true)]
  if (batchRows)
    await model.tables.run({
      query: `INSERT INTO ${database}.batch_log (projector, sequence, positions, appended_at) VALUES ${batchRows}`,
    })
  if (noteRows)
    await model.tables.run({
      query: `INSERT INTO ${database}.projector_log (projector, kind, detail, noted_at) VALUES ${noteRows}`,
    })
}

const behind = async (committed: Readonly<Record<string, number>>) => {
  const all = new Map(Object.entries(committed))
  return Object.fromEntries(await findBehindIn(model.tables, databases, group)(all, all))
}

/** What a projector does before it reads. */
const begin = (committed: Readonly<Record<string, number>>) =>
  noteBeginning(model.tables, databases, 'run', { group, committed: new Map(Object.entries(committed)) })

async function age(table: string, column: string, hours: number): Promise<void> {
  await model.tables.run({
    query: `ALTER TABLE ${databases.model}.${table} UPDATE ${column} = ${column} - INTERVAL ${hours} HOUR WHERE 1 SETTINGS mutations_sync = 2`,
  })
}

/** Ledger rows without a row of the batch log: a projector was killed in between. */
async function fillLedger(): Promise<void> {
  await createIngest(model.tables, databases)([campaignEvent({ campaign_id: 'c' })])
  await model.tables.run({ query: `TRUNCATE TABLE ${databases.model}.batch_log` })
}

describe('the recorded positions', () => {
  test('are those of batches and notes, and where they were a day before', async () => {
    const claims = fc.array(
      fc.record({
        place: fc.constantFrom('pledges/0', 'pledges/1'),
        next: fc.integer({ min: 1, max: 20 }),
        // Multiples of seven: no two are exactly a day apart, because the rows are written at slightly different times.
        hour: fc.integer({ min: 0, max: 28 }).map(turn => turn * 7),
        isNote: fc.boolean(),
      }),
      { minLength: 1, maxLength: 12 },
    )
    const committed = { 'pledges/0': 21, 'pledges/1': 10 }
    await fc.assert(
      fc.asyncProperty(claims, async written => {
        await write(written)
        const history = { isFilled: false, hasBegun: false }
        const expected = behindOf(new Map(Object.entries(committed)), recordedOf(written), history)
        expect(await behind(committed)).toEqual(Object.fromEntries(expected))
      }),
      { numRuns: 12 },
    )
  }, 240_000)

  test('are found among 200,000 notes', async () => {
    const detail = `concat('{"group":"${group}","positions":[{"topic":"pledges","partition":', toString(number % 20),
                      ',"next":', toString(intDiv(number, 20)), '}]}')`
    await model.tables.run({
      query: `INSERT INTO ${databases.model}.projector_log (projector, kind, detail, noted_at)
              SELECT 'run', 'present', ${detail}, now64(3, 'UTC') - toIntervalHour(9600 - intDiv(number, 25)) FROM numbers(200000)`,
    })
    expect(await behind({ 'pledges/3': 9_999, 'pledges/4': 9_998 })).toEqual({})
    // Twenty-five notes an hour, so each partition moves 30 to 32 positions in a day.
    expect(await behind({ 'pledges/3': 10_000 })).toEqual({
      'pledges/3': {
        recorded: 9_999,
        from: expect.toSatisfy((from: number) => from > 9_960 && from < 9_975),
      },
    })
  })
})

describe('the group', () => {
  test('is not ahead of the tables that it wrote, with recent batches, old batches, or notes', async () => {
    await begin({})
    await logBatch(pledges(0, 10), pledges(1, 5))
    await logBatch(pledges(0, 12))
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5 })).toEqual({})
    await age('batch_log', 'appended_at', 20 * 24)
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5 })).toEqual({})
    await note([pledges(0, 12), pledges(1, 5), pledges(2, 7)])
    await age('projector_log', 'noted_at', 300 * 24)
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5, 'pledges/2': 7 })).toEqual({})
  })

  test('is not ahead after an upgrade, also where an earlier version had no batch in 30 days, but a later restore is noticed', async () => {
    await createIngest(model.tables, databases)([campaignEvent({ campaign_id: 'c' })])
    await logBatch(pledges(0, 12))
    // A note of an earlier version.
    await note()
    const committed = { 'pledges/0': 12, 'pledges/2': 7 }
    // Before and after the first start.
    expect(await behind(committed)).toEqual({})
    await begin(committed)
    expect(await behind(committed)).toEqual({})
    await model.tables.run({ query: `TRUNCATE TABLE ${databases.model}.batch_log` })
    expect(await behind(committed)).toEqual({})
    // A second projector of the new version believes nothing more.
    await begin({ ...committed, 'pledges/5': 9 })
    expect(await behind({ 'pledges/2': 8, 'pledges/5': 9 })).toEqual({
      'pledges/2': { recorded: 7, from: 0 },
      'pledges/5': { from: 0 },
    })
  })

  test('is ahead of tables that were restored, that are new, or that do not know the partition', async () => {
    await begin({})
    await logBatch(pledges(0, 10))
    await note([pledges(1, 4)])
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 4 })).toEqual({
      'pledges/0': { recorded: 10, from: 0 },
    })
    expect(await behind({ 'pledges/0': 10, 'pledges/1': 5 })).toEqual({
      'pledges/1': { recorded: 4, from: 0 },
    })
    expect(await behind({ 'pledges/0': 10, 'pledges/7': 3 })).toEqual({ 'pledges/7': { from: 0 } })
    databases = await model.freshDatabases()
    expect(await behind({ 'pledges/0': 12 })).toEqual({ 'pledges/0': { from: 0 } })
  })

  test('is still ahead of new tables after a kill between the ledger and the batch log', async () => {
    await begin({ 'pledges/0': 12, 'pledges/1': 8 })
    await fillLedger()
    // The next start.
    await begin({ 'pledges/0': 12, 'pledges/1': 8 })
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 8 })).toEqual({
      'pledges/0': { from: 0 },
      'pledges/1': { from: 0 },
    })
  })

  test('is still ahead of new tables in the partitions of a second member that joins after the first batch', async () => {
    await begin({ 'pledges/0': 12, 'pledges/1': 8 })
    await fillLedger()
    await logBatch(pledges(0, 3))
    await begin({ 'pledges/0': 3, 'pledges/1': 8 })
    expect(await behind({ 'pledges/0': 3, 'pledges/1': 8 })).toEqual({ 'pledges/1': { from: 0 } })
    // Once the note has expired, the positions that were noted meanwhile say the same.
    await note([pledges(0, 3)])
    await model.tables.run({
      query: `ALTER TABLE ${databases.model}.projector_log DELETE WHERE kind = 'began' SETTINGS mutations_sync = 2`,
    })
    await begin({ 'pledges/0': 3, 'pledges/1': 8 })
    expect(await behind({ 'pledges/1': 8 })).toEqual({ 'pledges/1': { from: 0 } })
  })

  test('is not judged by the notes of another group: its topics may have been made anew', async () => {
    await begin({})
    await logBatch(pledges(0, 10))
    await note([pledges(0, 900)], 'before')
    expect(await behind({ 'pledges/0': 12 })).toEqual({ 'pledges/0': { recorded: 10, from: 0 } })
  })

  test('is up to date after a rebuild has read what the restored tables lacked', async () => {
    await begin({})
    await logBatch(pledges(0, 10))
    await writeNote(model.tables, databases, 'rebuild', {
      kind: 'reached',
      detail: { positions: [pledges(0, 12)], group },
    })
    expect(await behind({ 'pledges/0': 12 })).toEqual({})
  })

  test('may skip records once an operator has said so, as the guide shows it', async () => {
    await begin({})
    await logBatch(pledges(0, 10))
    expect(await behind({ 'pledges/0': 1_200 })).not.toEqual({})
    const guide = readFileSync(new URL('../../../deploy/README.md', import.meta.url), 'utf8')
    const statement =
      /INSERT INTO pledgeview\.projector_log [^`]*/.exec(guide)?.[0] ?? 'the guide has no statement'
    const query = statement
      .replace('pledgeview.', `${databases.model}.`)
      .replace('pledgeview-projector', group)
    await model.tables.run({ query })
    expect(await behind({ 'pledges/0': 1_200 })).toEqual({})
  })
})
