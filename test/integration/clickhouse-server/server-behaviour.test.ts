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
          reader: { ...ordinary, profile: 'reader' },
          strict: { ...ordinary, profile: 'strict' },
          granted: { ...ordinary, grants: { query: 'GRANT SELECT ON default.*' } },
          limited: { ...ordinary, quota: 'few' },
          single: { ...ordinary, profile: 'single' },
        },
        profiles: {
          reader: { readonly: 2 },
          strict: { readonly: 1 },
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

    test('fails run, after progress headers', async () => {
      // Shorter than the statement, but longer than a busy machine stands still.
      const late = open({ silenceMsMax: 3_000 }).run({
        query: `SELECT number, sleepEachRow(0.5), throwIf(number = 10) ${slowly}`,
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

  test.each(['rows', 'run', 'insert'] as const)('a wrong password is refused: %s', async name => {
    const table = await freshTable('n UInt32')
    const refused = use(open({ password: 'a wrong one' }), name, table)
    await expect(refused).rejects.toMatchObject({ type: 'AUTHENTICATION_FAILED', retryable: false })
    await expect(refused).rejects.not.toThrow('a wrong one')
  })

  test.each([
    ['reader', 'READONLY'],
    ['strict', 'READONLY'],
    ['granted', 'ACCESS_DENIED'],
  ])('a user that may only read cannot write: %s', async (user, type) => {
    const table = await freshTable('n UInt32')
    const reader = open({ user, password: '' })
    if (user !== 'strict') expect(await reader.rows({ query: `SELECT n FROM ${table}` })).toEqual([])
    for (const write of [
      () => use(reader, 'run', table),
      () => use(reader, 'insert', table),
      () => reader.run({ query: `TRUNCATE TABLE ${table}` }),
      () => reader.run({ query: `DROP TABLE ${table}` }),
    ]) {
      await expect(write()).rejects.toMatchObject({ type, retryable: false })
    }
    expect(await countOf(table)).toBe(0)
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

  test('settings in other sessions do not affect our statements', async () => {
    const { url, user, password } = clickHouse
    const headers = { Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
    const inSession = async (query: string) => {
      const response = await fetch(`${url}/?session_id=theirs`, { method: 'POST', headers, body: query })
      return response.text()
    }
    await inSession('SET max_result_rows = 1, max_execution_time = 17')
    await inSession('CREATE TEMPORARY TABLE theirs (n UInt8)')
    expect(await inSession("SELECT getSetting('max_execution_time')")).toBe('17\n')
    const ours = await Promise.all(
      Array.from({ length: 20 }, () =>
        tables.rows({ query: "SELECT number, getSetting('max_execution_time') AS bound FROM numbers(2)" }),
      ),
    )
    for (const rows of ours) {
      expect(rows).toEqual([
        { number: 0, bound: 0 },
        { number: 1, bound: 0 },
      ])
    }
    await expect(tables.rows({ query: 'SELECT * FROM theirs' })).rejects.toMatchObject({
      type: 'UNKNOWN_TABLE',
    })
  })

  test.each([
    ['Int64', 'UInt64', 1],
    ['UInt16', 'UInt8', 1],
    ['UInt8', 'Bool', true],
    ['Bool', 'UInt8', 1],
    ["DateTime64(6, 'UTC')", "DateTime64(3, 'UTC')", 1],
    ["DateTime64(3, 'Asia/Tokyo')", "DateTime64(3, 'UTC')", 1],
    ['Nullable(String)', 'String', 'text'],
    ['FixedString(4)', 'String', 'text'],
    ['LowCardinality(String)', 'String', 'text'],
    ['Array(String)', 'String', 'text'],
    ['Tuple(a UInt8, b UInt8)', 'Tuple(b UInt8, a UInt8)', { a: 1, b: 2 }],
    ['Tuple(a UInt8, b UInt8)', 'Tuple(a UInt8)', { a: 1 }],
    ['Decimal(38, 4)', 'Int64', 1],
  ])('a column of %s refuses rows of %s', async (type, sent, value) => {
    const table = await freshTable(`n ${type}`)
    const columns = [{ name: 'n', type: sent }]
    const refused = tables.insert({ table, columns, rows: encodeRows(columns, [[value]]) })
    await expect(refused).rejects.toMatchObject({ type: 'INCORRECT_DATA', retryable: false })
    expect(await countOf(table)).toBe(0)
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
