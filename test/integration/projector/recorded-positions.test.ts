/** What the tables have of each partition, read from ClickHouse. */
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { batchLogInsert, emptyBatch } from '../../../services/projector/ingest/batch.ts'
import { writeNote } from '../../../services/projector/projector-log.ts'
import {
  type Claim,
  findBehindIn,
  readBatches,
  readNotes,
  recordedOf,
} from '../../../services/projector/recorded-positions.ts'
import type { Position } from '../../../services/shared/event-log/port.ts'
import type { Databases } from '../../../services/shared/tables/port.ts'
import { createIngest, hashBacker, type ModelTables, openModelTables } from '../../support/model-tables.ts'
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

/** Writes claims with their ages. An hour is a real hour before now, and claims lie half an hour away from every bound. */
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
  const find = findBehindIn(model.tables, databases, group)
  return Object.fromEntries(await find(new Map(Object.entries(committed))))
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
    await fc.assert(
      fc.asyncProperty(claims, async written => {
        await write(written)
        // The batches day by day.
        const days = Array.from({ length: 10 }, (_, day) => ({ fromHours: day * 24 + 24, toHours: day * 24 }))
        const read = await Promise.all(days.map(day => readBatches(model.tables, databases, day)))
        const claims = [...read.flat(), ...(await readNotes(model.tables, databases, { group }))]
        expect(recordedOf(claims)).toEqual(recordedOf(written))
      }),
      { numRuns: 30 },
    )
  }, 120_000)
})

describe('the group', () => {
  beforeEach(() => createIngest(model.tables, databases)([campaignEvent({ campaign_id: 'c' })]))

  test('is not ahead of the tables that it wrote, with recent batches, old batches, notes, or after an upgrade', async () => {
    await logBatch(pledges(0, 10), pledges(1, 5))
    await logBatch(pledges(0, 12))
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5 })).toEqual({})
    await model.tables.run({
      query: `ALTER TABLE ${databases.model}.batch_log UPDATE appended_at = appended_at - INTERVAL 20 DAY WHERE 1 SETTINGS mutations_sync = 2`,
    })
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5 })).toEqual({})
    // A version before positions were noted, and a partition without a batch in 30 days.
    await note()
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5, 'pledges/2': 7 })).toEqual({})
    await note([pledges(0, 12), pledges(1, 5), pledges(2, 7)])
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 5, 'pledges/2': 7 })).toEqual({})
  })

  test('is ahead of tables that were restored, that are new, or that do not know the partition', async () => {
    await logBatch(pledges(0, 10))
    await note([pledges(1, 4)])
    expect(await behind({ 'pledges/0': 12, 'pledges/1': 4 })).toEqual({
      'pledges/0': { recorded: 10, from: 0 },
    })
    expect(await behind({ 'pledges/0': 10, 'pledges/1': 5 })).toEqual({
      'pledges/1': { recorded: 4, from: 0 },
    })
    // While projectors are upgraded, only some of them note positions.
    expect(await behind({ 'pledges/0': 10, 'pledges/7': 3 })).toEqual({})
    await model.tables.run({
      query: `ALTER TABLE ${databases.model}.projector_log UPDATE noted_at = noted_at - INTERVAL 25 HOUR WHERE 1 SETTINGS mutations_sync = 2`,
    })
    expect(await behind({ 'pledges/0': 10, 'pledges/7': 3 })).toEqual({ 'pledges/7': { from: 0 } })
    databases = await model.freshDatabases()
    expect(await behind({ 'pledges/0': 12 })).toEqual({ 'pledges/0': { from: 0 } })
  })

  test('is not judged by the notes of another group: its topics may have been made anew', async () => {
    await logBatch(pledges(0, 10))
    await note([pledges(0, 900)], 'before')
    expect(await behind({ 'pledges/0': 12 })).toEqual({ 'pledges/0': { recorded: 10, from: 0 } })
  })

  test('is up to date after a rebuild has read what the restored tables lacked', async () => {
    await logBatch(pledges(0, 10))
    await writeNote(model.tables, databases, 'rebuild', {
      kind: 'reached',
      detail: { positions: [pledges(0, 12)], group },
    })
    expect(await behind({ 'pledges/0': 12 })).toEqual({})
  })
})
