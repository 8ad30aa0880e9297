/**
 * The promises of the tables port (services/tables/port.ts), on any server. That values arrive as they are is in
 * tables-values.test.ts. "Side by side" is shown by the order in which statements end, never by time.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openTables } from '../../../services/tables/clickhouse/clickhouse.ts'
import { idChunks } from '../../../services/tables/clickhouse/statements.ts'
import { TablesError } from '../../../services/tables/port.ts'
import { settingsFor } from '../../support/clickhouse/clickhouse.ts'
import { rowsOf, useDatabase } from '../../support/clickhouse/use-database.ts'
import { makeCertificate, openssl } from '../../support/kafka/certificate.ts'
import { needs } from '../../support/runner/requirements.ts'
import { answers, startMisbehavingServer } from '../../support/servers/misbehaving-server.ts'

const { server, tables, freshTable } = useDatabase()

describe('ClickHouse over HTTP', () => {
  test('takes long ids in parts, in their order, each as large as a server accepts by default', async () => {
    const all = Array.from({ length: 1_000 }, (_, n) => `${n}'\\`.padStart(256, '€'))
    for (const countMax of [100, all.length]) {
      const parts = [...idChunks(all, countMax)]
      expect(parts.flat()).toEqual(all)
      for (const ids of parts) {
        expect(ids.length).toBeLessThanOrEqual(countMax)
        const query = 'SELECT {ids:Array(String)} AS ids'
        expect(await tables().rows({ query, query_params: { ids } })).toEqual([{ ids }])
      }
    }
  })

  test('keeps a statement that works for longer than it may be silent', async () => {
    // Shorter than the statements, but longer than a busy machine stands still.
    const impatient = openTables({ ...settingsFor(server()), silenceMsMax: 7_000 })
    const slow = await freshTable('n UInt8')
    const slowly = 'FROM numbers(80) SETTINGS max_block_size = 1, async_insert = 0'
    const late = impatient.run({ query: `SELECT throwIf(sleepEachRow(0.1) = 0 AND number = 75) ${slowly}` })
    await Promise.all([
      expect(impatient.rows({ query: `SELECT sum(sleepEachRow(0.1)) AS slept ${slowly}` })).resolves.toEqual([
        { slept: 0 },
      ]),
      impatient.run({ query: `INSERT INTO ${slow} SELECT sleepEachRow(0.1) ${slowly}` }),
      expect(late).rejects.toMatchObject({
        type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
        retryable: false,
      }),
    ])
    expect(await tables().rows({ query: `SELECT count() AS rows FROM ${slow}` })).toEqual([{ rows: 80 }])
    await impatient.close()
  })

  test('refuses to write when rows are requested', async () => {
    const kept = await freshTable('n UInt8')
    const written = tables().rows({ query: `INSERT INTO ${kept} SELECT 1` })
    await expect(written).rejects.toMatchObject({ type: 'READONLY', retryable: false })
    expect(await tables().rows({ query: `SELECT n FROM ${kept}` })).toEqual([])
  })

  test('says that credentials are wrong, without saying them', async () => {
    const stranger = openTables({ ...settingsFor(server()), password: 'wrong-password' })
    const refused = stranger.run({ query: 'SELECT 1' })
    await expect(refused).rejects.toMatchObject({ type: 'AUTHENTICATION_FAILED', retryable: false })
    await expect(refused).rejects.not.toThrow('wrong-password')
    await stranger.close()
  })
})

describe('statements side by side', () => {
  test('slow statements do not hold up others, with parameters or without', async () => {
    const stop = new AbortController()
    // They end with the signal, unless the others wait for them: then after a minute.
    const query = 'SELECT sleepEachRow({seconds:Float64}) FROM numbers(60) SETTINGS max_block_size = 1'
    const slow = [{ query, query_params: { seconds: 1 } }, { signal: stop.signal }] as const
    const slowOnes = [tables().rows(...slow), tables().run(...slow)]
    const stopped = Promise.all(slowOnes.map(one => expect(one).rejects.toThrow('no longer waits')))
    await Promise.all([
      tables().rows({ query: 'SELECT 1' }),
      tables().rows({ query: 'SELECT {n:UInt8}', query_params: { n: 1 } }),
    ])
    stop.abort()
    await stopped
  })

  test('a statement whose signal is aborted already does not run', async () => {
    const table = await freshTable('n UInt32')
    const insert = rowsOf(table, { n: 'UInt32' }, [[1]])
    await expect(tables().insert(insert, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(Error)
    expect(await tables().rows({ query: `SELECT count() AS rows FROM ${table}` })).toEqual([{ rows: 0 }])
  })

  test('a statement uses no more threads than its caller lets it, and the next one as many as before', async () => {
    const table = await freshTable('threads UInt32')
    const threads = "SELECT toUInt32(getSetting('max_threads')) AS threads"
    const [before] = await tables().rows({ query: threads })
    expect(await tables().rows({ query: threads }, { threadsMax: 3 })).toEqual([{ threads: 3 }])
    await tables().run({ query: `INSERT INTO ${table} ${threads}` }, { threadsMax: 4 })
    expect(await tables().rows({ query: `SELECT threads FROM ${table}` })).toEqual([{ threads: 4 }])
    expect(await tables().rows({ query: threads })).toEqual([before])
  })
})

describe('a failure', () => {
  test('a statement that ClickHouse ended for its time may be tried again, and says so', async () => {
    const query =
      'SELECT max(sipHash64(number)) FROM numbers(1000000000000) SETTINGS max_execution_time = 0.05'
    await expect(tables().rows({ query })).rejects.toMatchObject({
      name: 'TablesError',
      retryable: true,
      type: 'TIMEOUT_EXCEEDED',
    })
  })

  test('a statement that found no memory may be tried again', async () => {
    const query = 'SELECT groupArray(number) FROM numbers(10000000) SETTINGS max_memory_usage = 10000000'
    await expect(tables().rows({ query })).rejects.toMatchObject({ name: 'TablesError', retryable: true })
  })

  test.each([
    ['a syntax error', 'SELEC 1', 'SYNTAX_ERROR'],
    ['an unknown table', 'SELECT * FROM system.no_such_table', 'UNKNOWN_TABLE'],
    ['a thrown error', 'SELECT throwIf(1)', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO'],
  ])('%s may not', async (_, query, type) => {
    const failed = tables().run({ query })
    await expect(failed).rejects.toBeInstanceOf(TablesError)
    await expect(failed).rejects.toMatchObject({ retryable: false, type })
  })

  test.each([
    ['cut off in a row', (rows: Uint8Array) => rows.subarray(0, -5)],
    [
      'with more than there should be',
      (rows: Uint8Array) => Buffer.concat([rows, Buffer.from('private.example')]),
    ],
    ['with a length that cannot be', (rows: Uint8Array) => Buffer.concat([rows, Buffer.alloc(9, 255)])],
  ] as const)('an insert %s is refused whole, and its rows are not quoted', async (_, spoil) => {
    const table = await freshTable('a UInt32, b String')
    const columns = { a: 'UInt32', b: 'String' }
    const whole = rowsOf(
      table,
      columns,
      Array.from({ length: 3 }, (_, n) => [n, `mind@private.example ${'long '.repeat(200)}`]),
    )
    const failed = await tables()
      .insert({ ...whole, rows: spoil(whole.rows) })
      .catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(TablesError)
    expect(failed).toMatchObject({ retryable: false })
    expect(everyTextOf(failed)).not.toContain('private.example')
    expect(await tables().rows({ query: `SELECT count() AS rows FROM ${table}` })).toEqual([{ rows: 0 }])
  })
})

describe('TLS', () => {
  test('a server whose authority is not known is not talked to; one whose authority is given, is', async context => {
    needs(context, openssl)
    const directory = await mkdtemp(join(tmpdir(), 'pledgeview-tls-'))
    const { ca, keyStore } = await makeCertificate(directory)
    const pem = await readFile(keyStore, 'utf8')
    await rm(directory, { recursive: true })
    const server = await startMisbehavingServer([answers('{"n":1}\n')], { key: pem, cert: pem })
    const credentials = { url: server.url, user: 'u', password: 'p' }
    const strict = openTables(settingsFor(credentials))
    await expect(strict.rows({ query: 'SELECT 1' })).rejects.toMatchObject({ retryable: false })
    expect(server.requests).toHaveLength(0)
    const trusting = openTables({ ...settingsFor(credentials), caCertificate: ca })
    expect(await trusting.rows({ query: 'SELECT 1' })).toEqual([{ n: 1 }])
    await strict.close()
    await trusting.close()
    await server.close()
  })
})

/** All that a log could print of an error: messages, stacks and the chain of causes. */
function everyTextOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${error.stack} ${error.message} ${JSON.stringify(error)} ${everyTextOf(error.cause)}`
}
