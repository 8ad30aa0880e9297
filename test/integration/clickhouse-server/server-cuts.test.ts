/** What happens to statements when their connection, or their server, ends while they run. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse.ts'
import { type TableInsert, type Tables, TablesError } from '../../../services/tables/port.ts'
import { createRowWriter } from '../../../services/tables/row-binary.ts'
import { type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse.ts'
import { startCuttingProxy } from '../../support/cutting-proxy.ts'

const rowsPerInsert = 100_000
const waits = { timeout: 60_000, interval: 20 }
const unknownOutcome = { name: 'TablesError', retryable: true, type: undefined }

describe('on a server', () => {
  let clickHouse: ClickHouse
  let tables: Tables

  beforeEach(async () => {
    clickHouse = await startClickHouse()
    tables = openTables(settingsFor(clickHouse))
    await tables.run({
      query: `CREATE TABLE kept (n UInt32, text String) ENGINE = MergeTree ORDER BY n
              SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
    })
  })

  afterEach(async () => {
    await tables.close()
    await clickHouse.stop()
  })

  test.each([
    [100, 'end'],
    [2_000, 'reset'],
    [3_000_000, 'end'],
  ] as const)(
    'an insert that is cut after %i bytes (%s) leaves no rows, and may be retried',
    async (bytesMax, ending) => {
      const proxy = await startCuttingProxy(clickHouse.url, { bytesMax, ending })
      const cut = openTables(settingsFor({ ...clickHouse, url: proxy.url }))
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

  test.each([
    ['rows', () => tables.rows({ query: `SELECT number, sleepEachRow(1) ${slowly}` })],
    [
      'run',
      () =>
        tables.run({ query: `INSERT INTO kept SELECT number, sleepEachRow(1) ${slowly}, async_insert = 0` }),
    ],
  ])('%s during which the server is killed may be retried', async (_, send) => {
    await tables.insert(insertOf(0))
    const sent = expect(send()).rejects.toMatchObject(unknownOutcome)
    await whenRuns('sleepEachRow')
    await clickHouse.kill()
    await sent
    await restart()
    expect(await countKept()).toBe(rowsPerInsert)
  })

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

  async function restart(): Promise<void> {
    await tables.close()
    const { directory } = clickHouse
    const { stop: removeDirectory } = clickHouse
    const next = await startClickHouse({ directory })
    clickHouse = {
      ...next,
      async stop() {
        await next.stop()
        await removeDirectory()
      },
    }
    tables = openTables(settingsFor(clickHouse))
  }

  async function countKept(): Promise<number | undefined> {
    const [row] = await tables.rows<{ rows: number }>({ query: 'SELECT count() AS rows FROM kept' })
    return row?.rows
  }

  /** Resolves when a statement with this text runs. */
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
})

const slowly = 'FROM numbers(30) SETTINGS max_block_size = 1'
const columns = [
  { name: 'n', type: 'UInt32' },
  { name: 'text', type: 'String' },
]

/** About five megabytes, all in one batch. */
function insertOf(batch: number): TableInsert {
  const writer = createRowWriter(columns)
  for (let row = 0; row < rowsPerInsert; row++) {
    writer.add([batch * rowsPerInsert + row, 'of a batch that is whole or not at all, and long enough'])
  }
  return { table: 'kept', columns, rows: writer.bytes() }
}
