/** A fold statement whose end takes longer than the commit horizon, for example on a slow disk: its rows get a new stamp. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { untilNoFoldRuns, untilNoFoldRunsIfSeen } from '../../../../services/projector/fold/running-folds.ts'
import { sleep } from '../../../../services/shared/sleep.ts'
import { type Databases, TablesError } from '../../../../services/shared/tables/port.ts'
import {
  createIngest,
  createTestFoldWorker,
  type ModelTables,
  openModelTables,
} from '../../../support/model-tables.ts'
import { campaignEvent } from '../../../support/sample-events.ts'

describe('a fold statement that still runs after its time', () => {
  let model: ModelTables
  let databases: Databases
  const monotonicMs = () => performance.now()

  beforeAll(async () => {
    model = await openModelTables()
  })

  afterAll(() => model.dispose())

  beforeEach(async () => {
    databases = await model.freshDatabases()
    // A merge would leave one of the rows that are counted.
    await model.tables.run({ query: `SYSTEM STOP MERGES ${databases.model}.campaigns` })
    const { foldWorker } = createTestFoldWorker(model.tables, databases, { holder: 'first' })
    await foldWorker.acquireLeadership()
    await createIngest(model.tables, databases)([campaignEvent({ campaign_id: 'c1' })])
    await foldWorker.fold()
    return () => model.drop(databases)
  })

  // On a busy machine the test sees the statement late, and it must still run then.
  const lateSeconds = 6

  /** Writes the row of c1 again, as a later statement of the first leader, after this time. */
  const writeLate = (seconds: number) =>
    model.tables.run({
      query: `INSERT INTO ${databases.model}.campaigns SELECT * REPLACE (fold_id + 10 AS fold_id) FROM ${databases.model}.campaigns FINAL
              WHERE sleepEachRow(${seconds}) = 0 SETTINGS function_sleep_max_microseconds_per_block = 0`,
    })

  async function latest(): Promise<{ rows: number; stamp: string }> {
    const [row] = await model.tables.rows<{ rows: number; stamp: string }>({
      query: `SELECT count() AS rows, toString(argMax(updated_at, fold_id)) AS stamp FROM ${databases.model}.campaigns`,
    })
    return row ?? { rows: 0, stamp: '' }
  }

  async function running(): Promise<number> {
    const [row] = await model.tables.rows<{ count: number }>({
      query: `SELECT count() AS count FROM system.processes
              WHERE query LIKE {start:String} AND query NOT LIKE '%system.processes%'`,
      query_params: { start: `INSERT INTO ${databases.model}.campaigns %` },
    })
    return row?.count ?? 0
  }

  test('is waited for', async () => {
    const late = writeLate(lateSeconds)
    await expect.poll(running).toBe(1)
    await untilNoFoldRuns(model.tables, databases, { msMax: 60_000, monotonicMs, sleep })
    expect((await latest()).rows).toBe(2)
    await late
  })

  test('is a retryable failure if it does not end', async () => {
    const late = writeLate(lateSeconds)
    await expect.poll(running).toBe(1)
    const waiting = untilNoFoldRunsIfSeen(model.tables, databases, { msMax: 0, monotonicMs, sleep })
    await expect(waiting).rejects.toThrow(TablesError)
    await expect(waiting).rejects.toMatchObject({ retryable: true })
    await late
  })

  test('cannot be waited for without the right to see it: a rebuild refuses, a fold worker has waited for its time', async () => {
    const rows = async () => {
      throw new TablesError('not allowed', { retryable: false, type: 'ACCESS_DENIED' })
    }
    const wait = { msMax: 60_000, monotonicMs, sleep }
    await expect(untilNoFoldRuns({ rows }, databases, wait)).rejects.toThrow('not allowed')
    await untilNoFoldRunsIfSeen({ rows }, databases, wait)
  })

  test('of the leader before: its row gets a new stamp from the next leader, after it has ended', async () => {
    let lateStamp = ''
    const { foldWorker } = createTestFoldWorker(model.tables, databases, {
      holder: 'second',
      async untilNoneRuns() {
        await writeLate(0)
        lateStamp = (await latest()).stamp
      },
    })
    await foldWorker.acquireLeadership()
    expect(lateStamp).not.toBe('')
    expect((await latest()).stamp > lateStamp).toBe(true)
  })
})
