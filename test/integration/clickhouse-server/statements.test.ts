/**
 * How the tables adapter behaves on a real server: late errors; and what happens to statements when their
 * connection, or their server, ends while they run.
 */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { createRowWriter } from '../../../services/tables/clickhouse/row-binary.ts'
import { type TableInsert, type Tables, TablesError } from '../../../services/tables/port.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse/clickhouse.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'
import { startProxy } from '../../support/kafka/proxy.ts'

const rowsPerInsert = 100_000
const waits = { timeout: 60_000, interval: 20 }
const unknownOutcome = { name: 'TablesError', retryable: true, type: undefined }
const columns = [
  { name: 'n', type: 'UInt32' },
  { name: 'text', type: 'String' },
]

let directory: TestDirectory
let clickHouse: ClickHouse
let tables: Tables

beforeAll(async () => {
  directory = makeTestDirectory()
  await start()
})

beforeEach(async () => {
  await tables.run({
    query: `CREATE OR REPLACE TABLE kept (n UInt32, text String, CONSTRAINT small CHECK n < 4000000000)
            ENGINE = MergeTree ORDER BY n SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
  })
})

afterAll(async () => {
  await stop()
  directory.remove()
})

test('an error that comes late fails an insert, which then leaves no rows', async () => {
  const writer = createRowWriter(columns)
  for (let n = 0; n < rowsPerInsert; n++) writer.add([n + 1 === rowsPerInsert ? 4_000_000_000 : n, ''])
  const refused = tables.insert({ table: 'kept', columns, rows: writer.bytes() })
  await expect(refused).rejects.toMatchObject({ type: 'VIOLATED_CONSTRAINT', retryable: false })
  expect(await countKept()).toBe(0)
})

test.each([
  [100, 'end'],
  [2_000, 'reset'],
  [3_000_000, 'end'],
] as const)(
  'an insert that is cut after %i bytes (%s) leaves no rows, and may be retried',
  async (bytesMax, ending) => {
    const targetPort = Number(new URL(clickHouse.url).port)
    const proxy = await startProxy({ targetPort, limit: { bytesMax, ending } })
    const cut = openTables(settingsFor({ ...clickHouse, url: `http://127.0.0.1:${proxy.port}` }))
    await expect(cut.insert(insertOf(0))).rejects.toMatchObject(unknownOutcome)
    expect(proxy.passed()).toBe(bytesMax)
    await whenIdle()
    expect(await countKept()).toBe(0)
    await tables.insert(insertOf(0))
    expect(await countKept()).toBe(rowsPerInsert)
    await cut.close()
    await proxy.close()
  },
)

test('inserts during a kill are complete if they were acknowledged, and otherwise complete or absent', async () => {
  const acknowledged: number[] = []
  const lasting = Array.from({ length: 4 }, async (_, lane) => {
    for (let n = lane; ; n += 4) {
      const failure = await tables.insert(insertOf(n)).catch((error: unknown) => error)
      if (failure instanceof TablesError) return failure
      acknowledged.push(n)
    }
  })
  await vi.waitFor(() => expect(acknowledged.length).toBeGreaterThan(4), waits)
  await clickHouse.kill()
  for (const failure of await Promise.all(lasting)) expect(failure).toMatchObject(unknownOutcome)
  await restart()
  const kept = await tables.rows<{ batch: number; rows: number }>({
    query: `SELECT intDiv(n, ${rowsPerInsert}) AS batch, count() AS rows FROM kept GROUP BY batch ORDER BY batch`,
  })
  expect(kept.filter(({ rows }) => rows !== rowsPerInsert)).toEqual([])
  expect(kept.map(({ batch }) => batch)).toEqual(expect.arrayContaining(acknowledged))
  expect(kept.length - acknowledged.length).toBeLessThanOrEqual(4)
})

test('an aborted read ends its work', async () => {
  const abort = new AbortController()
  const query = 'SELECT count(), sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1'
  const read = expect(tables.rows({ query }, { signal: abort.signal })).rejects.toMatchObject({
    retryable: false,
    type: undefined,
  })
  await whenRuns('sleepEachRow')
  abort.abort()
  await read
  await whenIdle()
})

async function start(): Promise<void> {
  clickHouse = await startClickHouse({ directory: directory.path })
  tables = openTables(settingsFor(clickHouse))
}

async function stop(): Promise<void> {
  await tables.close()
  await clickHouse.stop()
}

async function restart(): Promise<void> {
  await stop()
  await start()
}

/** About five megabytes, all in one batch. */
function insertOf(batch: number): TableInsert {
  const writer = createRowWriter(columns)
  for (let row = 0; row < rowsPerInsert; row++)
    writer.add([batch * rowsPerInsert + row, 'of a batch that is whole or not at all, and long enough'])
  return { table: 'kept', columns, rows: writer.bytes() }
}

async function countKept(): Promise<number | undefined> {
  const [row] = await tables.rows<{ rows: number }>({ query: 'SELECT count() AS rows FROM kept' })
  return row?.rows
}

async function whenRuns(text: string): Promise<void> {
  await vi.waitFor(async () => expect(await running()).toContain(text), waits)
}

/** Resolves when no statement runs except the session's, which never ends. */
async function whenIdle(): Promise<void> {
  await vi.waitFor(async () => expect(await running()).toBe(''), waits)
}

/** The text of all running statements except this one. */
async function running(): Promise<string> {
  const rows = await tables.rows<{ query: string }>({
    query: "SELECT query FROM system.processes WHERE user != '' AND query NOT LIKE '%system.processes%'",
  })
  return rows.map(({ query }) => query).join()
}
