/** How the tables adapter behaves on a real server: late errors, large bodies, users with few rights, quotas, sessions. */
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse.ts'
import { type TableInsert, type Tables, TablesError } from '../../../services/tables/port.ts'
import { createRowWriter, encodeRows } from '../../../services/tables/row-binary.ts'
import { askClickHouse, type ClickHouse, settingsFor, startClickHouse } from '../../support/clickhouse.ts'

const networks = { ip: '127.0.0.1' }
const ordinary = { password: '', networks, profile: 'default', quota: 'default' }
const waits = { timeout: 60_000, interval: 20 }

describe('on a server', () => {
  let clickHouse: ClickHouse
  let tables: Tables
  const opened: Tables[] = []

  beforeAll(async () => {
    clickHouse = await startClickHouse({
      moreUsers: {
        users: {
          limited: { ...ordinary, quota: 'few' },
          single: { ...ordinary, profile: 'single' },
        },
        profiles: {
          single: { max_concurrent_queries_for_user: 1 },
        },
        quotas: { few: { interval: { duration: 2_147_483_647, queries: 1 } } },
      },
    })
    tables = open()
  })

  afterAll(async () => {
    for (const one of opened) await one.close()
    await clickHouse.stop()
  })

  describe('an error that comes late', () => {
    const slowly = 'FROM numbers(12) SETTINGS max_block_size = 1'

    test('fails rows, after correct rows', async () => {
      const late = open({ silenceMsMax: 300_000 }).rows({
        query: `SELECT number, sleepEachRow(0.05), throwIf(number = 10) ${slowly}`,
      })
      await expect(late).rejects.toMatchObject({
        type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
        retryable: false,
      })
    })

    test('fails an insert, which then leaves no rows', async () => {
      const table = await freshTable('n UInt32, CONSTRAINT small CHECK n < 99999')
      await expect(tables.insert(numbersInto(table, 100_000))).rejects.toMatchObject({
        type: 'VIOLATED_CONSTRAINT',
        retryable: false,
      })
      expect(await countOf(table)).toBe(0)
    })
  })

  test.each([false, true])('bodies of many megabytes arrive both ways, compressed: %s', async compression => {
    const own = open({ compression })
    const table = await freshTable('n UInt32, text String')
    const columns = [
      { name: 'n', type: 'UInt32' },
      { name: 'text', type: 'String' },
    ]
    const writer = createRowWriter(columns)
    // Half of it is not compressible.
    const texts = Array.from({ length: 1_000 }, (_, n) =>
      n % 2 === 0 ? 'é'.repeat(5_000) : randomBytes(5_000).toString('hex'),
    )
    for (const [n, text] of texts.entries()) writer.add([n, text])
    await own.insert({ table, columns, rows: writer.bytes() })
    const rows = await own.rows<{ text: string }>({ query: `SELECT text FROM ${table} ORDER BY n` })
    expect(rows.map(({ text }) => text)).toEqual(texts)
  })

  test('an exhausted quota may be retried, and its error quotes no rows', async () => {
    const limited = open({ user: 'limited', password: '' })
    const table = await freshTable('n UInt32')
    await limited.rows({ query: `SELECT n FROM ${table}` })
    for (const name of ['rows', 'run', 'insert'] as const) {
      await expect(use(limited, name, table)).rejects.toMatchObject({
        type: 'QUOTA_EXCEEDED',
        retryable: true,
      })
    }
    expect(await countOf(table)).toBe(0)
  })

  test('too many statements of a user at once may be retried', async () => {
    const single = open({ user: 'single', password: '' })
    const slow = single.rows({ query: 'SELECT sleepEachRow(1) FROM numbers(3)' })
    await vi.waitFor(async () => expect(await running('sleepEachRow(1)')).toBe(1), waits)
    await expect(single.rows({ query: 'SELECT 1' })).rejects.toMatchObject({
      type: 'TOO_MANY_SIMULTANEOUS_QUERIES',
      retryable: true,
    })
    await slow
  })

  test.each(['rows', 'run'] as const)('a statement that an operator ends may be retried: %s', async name => {
    const mark = randomUUID()
    const query = `SELECT sleepEachRow(1), '${mark}' FROM numbers(60) SETTINGS max_block_size = 1`
    const ended = expect(tables[name]({ query })).rejects.toMatchObject({
      type: 'QUERY_WAS_CANCELLED',
      retryable: true,
    })
    await vi.waitFor(async () => expect(await running(mark)).toBe(1), waits)
    await tables.run({ query: `KILL QUERY WHERE query LIKE '%${mark}%' AND query NOT LIKE 'KILL%' SYNC` })
    await ended
  })

  test('a result above the size limit fails as a whole', async () => {
    const query = 'SELECT number FROM numbers(1000000) SETTINGS max_result_rows = 100000'
    await expect(tables.rows({ query })).rejects.toMatchObject({
      type: 'TOO_MANY_ROWS_OR_BYTES',
      retryable: false,
    })
  })

  test('rows with an unknown column are refused, and the error names the column', async () => {
    const table = await freshTable('n UInt32')
    const columns = [{ name: 'nowhere', type: 'UInt32' }]
    const refused = tables.insert({ table, columns, rows: encodeRows(columns, [[1]]) })
    await expect(refused).rejects.toMatchObject({ type: 'NO_SUCH_COLUMN_IN_TABLE', retryable: false })
    await expect(refused).rejects.toThrow('nowhere')
    await expect(refused).rejects.toBeInstanceOf(TablesError)
  })

  function open(settings: Partial<Parameters<typeof openTables>[0]> = {}): Tables {
    const one = openTables({ ...settingsFor(clickHouse), ...settings })
    opened.push(one)
    return one
  }

  async function freshTable(columns: string): Promise<string> {
    const name = `t_${randomUUID().replaceAll('-', '')}`
    await tables.run({ query: `CREATE TABLE ${name} (${columns}) ENGINE = MergeTree ORDER BY tuple()` })
    return name
  }

  async function countOf(table: string): Promise<number> {
    return Number(await askClickHouse(clickHouse, `SELECT count() FROM ${table}`))
  }

  /** How many running statements contain the text. */
  async function running(text: string): Promise<number> {
    const query = `SELECT count() FROM system.processes WHERE query LIKE '%${text}%' AND query NOT LIKE '%system.processes%'`
    return Number(await askClickHouse(clickHouse, query))
  }
})

function numbersInto(table: string, rows: number): TableInsert {
  const columns = [{ name: 'n', type: 'UInt32' }]
  const writer = createRowWriter(columns)
  for (let n = 0; n < rows; n++) writer.add([n])
  return { table, columns, rows: writer.bytes() }
}

function use(tables: Tables, name: 'rows' | 'run' | 'insert', table: string): Promise<unknown> {
  if (name === 'rows') return tables.rows({ query: `SELECT n FROM ${table}` })
  if (name === 'run') return tables.run({ query: `INSERT INTO ${table} SELECT 1 SETTINGS async_insert = 0` })
  return tables.insert(numbersInto(table, 1))
}
