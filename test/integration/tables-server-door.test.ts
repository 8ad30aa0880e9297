/** The ClickHouse door against the client that it is for, unmodified, and against what a server does. */
import { Agent, request } from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type ClickHouseDoor, startClickHouseDoor } from '../support/clickhouse-door.ts'

const user = 'pledgeview'
const password = 'p:ass wörd'
let door: ClickHouseDoor
const clients: ClickHouseClient[] = []

beforeAll(async () => {
  door = await startClickHouseDoor({ user, password })
})

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close()
})

afterAll(() => door.stop())

function connect(options: Parameters<typeof createClient>[0] = {}): ClickHouseClient {
  const client = createClient({
    url: door.url,
    username: user,
    password,
    log: { level: ClickHouseLogLevel.OFF },
    ...options,
  })
  clients.push(client)
  return client
}

async function fetchFrom(search: string, options: RequestInit): Promise<Response> {
  return fetch(`${door.url}/${search}`, { method: 'POST', ...options })
}

describe('the client', () => {
  test('pings, with a statement and without', async () => {
    expect(await connect().ping()).toEqual({ success: true })
    expect(await connect().ping({ select: true })).toEqual({ success: true })
    const stranger = connect({ password: 'wrong' })
    expect(await stranger.ping()).toEqual({ success: true })
    expect(await stranger.ping({ select: true })).toMatchObject({ success: false })
  })

  test.each([false, true])(
    'makes, fills and reads a table in its own ways (compressed: %s)',
    async compressed => {
      const client = connect({ compression: { request: compressed, response: compressed } })
      const table = `t_${compressed}`
      await client.command({
        query: `CREATE TABLE ${table} (n UInt32, s String) ENGINE = MergeTree ORDER BY n`,
      })
      await client.insert({ table, values: [{ n: 1, s: 'a' }], format: 'JSONEachRow' })
      await client.insert({
        table,
        values: Readable.from(['2,b\n', '3,c\n'], { objectMode: false }),
        format: 'CSV',
        columns: ['n', 's'],
      })
      await client.exec({ query: `INSERT INTO ${table} FORMAT TSV`, values: Readable.from(['4\td\\n\n']) })
      const result = await client.query({
        query: `SELECT n, s FROM ${table} WHERE n IN {ns:Array(UInt32)} ORDER BY n`,
        query_params: { ns: [1, 2, 4] },
        format: 'JSONEachRow',
      })
      expect(await result.json()).toEqual([
        { n: 1, s: 'a' },
        { n: 2, s: 'b' },
        { n: 4, s: 'd\n' },
      ])
      const json = await client.query({ query: `SELECT count() AS rows FROM ${table}`, format: 'JSON' })
      expect(await json.json()).toMatchObject({ rows: 1, data: [{ rows: 4 }] })
    },
  )

  test('gets its query id back, and a summary of what was read', async () => {
    const { query_id, summary, stream } = await connect().exec({
      query: 'SELECT number FROM numbers(10)',
      query_id: 'an-id-of-mine',
    })
    expect(query_id).toBe('an-id-of-mine')
    expect(summary?.read_rows).toBe('10')
    expect(await text(stream)).toBe('0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n')
  })

  test('has settings for one statement, and they end with it', async () => {
    const client = connect()
    const query = "SELECT toString(getSetting('max_block_size')) AS size"
    const asked = await client.query({
      query,
      format: 'JSONEachRow',
      clickhouse_settings: { max_block_size: '7' },
    })
    expect(await asked.json()).toEqual([{ size: '7' }])
    const later = await Promise.all(
      Array.from({ length: 20 }, async () => (await client.query({ query, format: 'JSONEachRow' })).json()),
    )
    expect(later.filter(rows => JSON.stringify(rows).includes('"7"'))).toEqual([])
  })

  test('gets progress headers of a statement that takes its time, and then its rows', async () => {
    const { stream, response_headers } = await connect().exec({
      query: 'SELECT sleep(0.5)',
      clickhouse_settings: { send_progress_in_http_headers: 1, http_headers_progress_interval_ms: '50' },
    })
    expect(await text(stream)).toBe('0\n')
    expect(String(response_headers['x-clickhouse-progress'])).toMatch(/"read_rows":"\d+".*"elapsed_ns":"\d+"/)
  })

  test('learns of an error that came after progress headers', async () => {
    const failed = connect().command({
      query: 'SELECT throwIf(sleep(0.5) = 0)',
      clickhouse_settings: { send_progress_in_http_headers: 1, http_headers_progress_interval_ms: '50' },
    })
    await expect(failed).rejects.toMatchObject({ code: '395', type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO' })
  })
})

describe('the door', () => {
  const basic = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const authorized = { headers: { Authorization: basic } }

  test.each([
    ['SELEC 1', 400, '62'],
    ['SELECT * FROM never_heard_of', 404, '60'],
    ['SELECT 1 SETTINGS never_heard_of = 1', 404, '115'],
    ['SELECT throwIf(1)', 500, '395'],
    [
      'SELECT max(sipHash64(number)) FROM numbers(1000000000000) SETTINGS max_execution_time = 0.05',
      408,
      '159',
    ],
  ])('answers %s with status %i and exception %s', async (body, status, code) => {
    const response = await fetchFrom('', { ...authorized, body })
    expect(response.status).toBe(status)
    expect(response.headers.get('x-clickhouse-exception-code')).toBe(code)
    expect(await response.text()).toMatch(
      new RegExp(`^Code: ${code}\\. DB::Exception: .+\\([A-Z_]+\\) \\(version`),
    )
  })

  test.each([
    [{}, 403],
    [{ Authorization: `Basic ${Buffer.from('pledgeview:wrong').toString('base64')}` }, 403],
    [{ Authorization: basic }, 200],
  ])('lets nobody in without credentials (%#)', async (headers, status) => {
    const response = await fetch(`${door.url}/`, { method: 'POST', headers, body: 'SELECT 1' })
    expect(response.status).toBe(status)
    await response.text()
  })

  test('takes credentials in headers of its own and in the URL too', async () => {
    const other = await startClickHouseDoor({ user: 'u', password: 'secret' })
    const headers = { 'X-ClickHouse-User': 'u', 'X-ClickHouse-Key': 'secret' }
    const byHeader = await fetch(other.url, { method: 'POST', headers, body: 'SELECT 1' })
    expect(await byHeader.text()).toBe('1\n')
    const byUrl = await fetch(`${other.url}/?user=u&password=secret&query=SELECT%201`)
    expect(await byUrl.text()).toBe('1\n')
    await other.stop()
  })

  test('changes nothing on a GET', async () => {
    const query = encodeURIComponent('CREATE TABLE by_get (n UInt8) ENGINE = Memory')
    const response = await fetchFrom(`?query=${query}`, { ...authorized, method: 'GET' })
    expect(response.headers.get('x-clickhouse-exception-code')).toBe('164')
  })

  test('takes a statement from URL, body, or both, in the format and database that the URL names', async () => {
    const response = await fetchFrom(
      `?database=system&default_format=JSONEachRow&query=${encodeURIComponent('SELECT dummy')}`,
      { ...authorized, body: 'FROM one' },
    )
    expect(await response.text()).toBe('{"dummy":0}\n')
  })

  test('keeps a connection open for the next request', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ports: (number | undefined)[] = []
    for (let n = 0; n < 5; n++) {
      await new Promise((resolve, reject) => {
        const sent = request(`${door.url}/?query=SELECT%201`, { agent, headers: authorized.headers })
        sent.on('response', response => response.resume().on('end', resolve))
        sent.on('socket', socket => socket.once('connect', () => ports.push(socket.localPort)))
        sent.on('error', reject).end()
      })
    }
    agent.destroy()
    expect(ports).toHaveLength(1)
  })

  test('compresses only what is asked for', async () => {
    const { hostname, port } = new URL(door.url)
    const headers = { Authorization: basic, 'Accept-Encoding': 'gzip' }
    const encodings: unknown[] = []
    for (const setting of ['0', '1']) {
      const body = await new Promise<Buffer>((resolve, reject) => {
        const path = `/?enable_http_compression=${setting}&query=SELECT%201`
        request({ hostname, port, path, headers }, response => {
          encodings.push(response.headers['content-encoding'])
          response.toArray().then(chunks => resolve(Buffer.concat(chunks)), reject)
        }).end()
      })
      expect((setting === '1' ? gunzipSync(body) : body).toString()).toBe('1\n')
    }
    expect(encodings).toEqual([undefined, 'gzip'])
  })

  test.each([
    ['?session_id=s', {}],
    ['?role=r', {}],
    ['?compress=1', {}],
    ['', { 'Content-Type': 'multipart/form-data; boundary=b' }],
    ['', { 'Content-Encoding': 'zstd' }],
  ])('says what it does not have (%#)', async (search, headers) => {
    const response = await fetchFrom(search, {
      headers: { Authorization: basic, ...headers },
      body: 'SELECT 1',
    })
    expect(response.status).toBe(501)
    expect(response.headers.get('x-clickhouse-exception-code')).toBe('48')
  })

  test('is too busy beyond a hundred statements, as a server is', async () => {
    const codes = await Promise.all(
      Array.from({ length: 120 }, async () => {
        const response = await fetchFrom('', { ...authorized, body: 'SELECT sleep(0.3)' })
        await response.text()
        return response.headers.get('x-clickhouse-exception-code')
      }),
    )
    expect(codes.filter(code => code === '202').length).toBeGreaterThan(0)
    expect(codes.filter(code => code === null).length).toBeGreaterThanOrEqual(100)
  })

  test('lets statements that run end before it stops', async () => {
    const other = await startClickHouseDoor({ password: 'secret' })
    const headers = { 'X-ClickHouse-Key': 'secret' }
    const body = "SELECT sleep(0.5), repeat('x', 1000000) FROM numbers(30)"
    const late = fetch(other.url, { method: 'POST', headers, body }).then(response => response.text())
    await untilItRuns(other)
    await other.stop()
    expect(await late).toHaveLength(30 * ('0\tx\n'.length + 999_999))
  })
})

/** Resolves once a statement that sleeps runs behind the door. */
async function untilItRuns(other: ClickHouseDoor): Promise<void> {
  const query = encodeURIComponent(
    "SELECT count() FROM system.processes WHERE query LIKE '%sleep(0.5)%' AND query NOT LIKE '%processes%'",
  )
  for (;;) {
    const response = await fetch(`${other.url}/?password=secret&query=${query}`)
    if ((await response.text()).trim() !== '0') return
  }
}
