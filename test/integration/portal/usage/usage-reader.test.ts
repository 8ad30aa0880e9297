/**
 * What the portal says of a key's last use, right to a minute as far as it was counted, of its latest requests, and which answers of
 * the API count for it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listDefaults } from '../../../../contracts/api/parameters.ts'
import { generateSecret } from '../../../../services/api-keys/credentials.ts'
import { createRequestsReader, createUsageReader } from '../../../../services/portal/usage/usage-reader.ts'
import type { AnsweredRequest } from '../../../../services/query/http/request-log.ts'
import { defaultDatabases as databases } from '../../../../services/tables/generation-log.ts'
import { migrate } from '../../../../services/tables/schema/migrate.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse/clickhouse.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../../support/query/app.ts'
import { fakeTables } from '../../../support/query/fake-tables.ts'
import { rawRequest, sendRaw } from '../../../support/query/raw-http.ts'
import { createTestRecorder, readUsage } from '../../../support/query/usage.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

let own: OwnTables

beforeAll(async () => {
  own = await openOwnTables()
  await migrate(own.tables, databases)
})
afterAll(() => own.close())

describe('the usage of a key', () => {
  let now: number

  beforeEach(async () => {
    await own.tables.run({ query: `TRUNCATE TABLE ${databases.base}.api_key_usage` })
    now = Date.now()
  })

  async function startRun(process: string) {
    const run = createTestRecorder(own.tables, databases, process, { now: () => now })
    await run.start()
    return run
  }

  test('has its latest requests of three days, with nothing that a client typed, and no more than its limit admits', async () => {
    const run = createTestRecorder(own.tables, databases, 'first', { now: () => now, keyLimit: 600 })
    const parameters = { ...listDefaults, category: 'pv_secret_1', limit: 2 }
    const list = { route: '/api/v1/projects', status: 200, parameters }
    const answered = { method: 'GET', admission: null, isDeprecated: false }
    const count = (key: string, request: Pick<AnsweredRequest, 'id' | 'route' | 'status' | 'parameters'>) =>
      run.count(key, request.status, false, { ...answered, ...request }, 7.4)
    count('k', { ...list, id: 'aa-1' })
    now += 1
    const detail = { route: '/api/v1/projects/:slug', status: 404, parameters: { slug: 'pv_secret_2' } }
    count('k', { ...detail, id: 'ab-2' })
    for (let n = 0; n < 610; n++) count('other', { ...list, id: `aa-other-${n}` })
    await run.flush()
    await run.close()
    const read = createRequestsReader({ tables: own.tables, databases }, () => now)
    const { latest, endpoints } = await read([{ key: 'k' }], '')
    const row = { api_key: 'k', ms: 7 }
    const first = { ...row, path: '/api/v1/projects?limit=2&category', status: 200, request_id: 'aa-1' }
    expect(latest).toEqual([
      { ...row, path: detail.route, status: 404, request_id: 'ab-2', answered_at: now },
      { ...first, answered_at: now - 1 },
    ])
    expect(endpoints).toEqual([
      { endpoint: list.route, status: 200, requests: 1, p95_ms: 7 },
      { endpoint: detail.route, status: 404, requests: 1, p95_ms: 7 },
    ])
    expect((await read([{ key: 'k' }], 'aa')).latest).toMatchObject([{ request_id: 'aa-1' }])
    expect((await read([{ key: 'other' }], '')).endpoints).toMatchObject([{ requests: 600 }])
    const hours = await createUsageReader({ tables: own.tables, databases }, () => now)(
      [{ key: 'k' }],
      'hour',
    )
    expect(hours.get('k')?.days).toHaveLength(72)
    expect(hours.get('k')?.days.at(-1)).toMatchObject({
      ok: 1,
      other: 1,
      day: new Date(now).toISOString().slice(0, 13),
    })
    // Three days after the latest one only that is shown, and then none, whenever ClickHouse deletes them.
    now += 3 * dayMs
    expect((await read([{ key: 'k' }], '')).latest).toMatchObject([{ request_id: 'ab-2' }])
    now += 1
    expect(await read([{ key: 'k' }], '')).toEqual({ latest: [], endpoints: [] })
  })

  test('was last at the minute of the latest answer to its credentials, in whichever process', async () => {
    const first = await startRun('first')
    const second = await startRun('second')
    first.count('k', 200, false)
    now += 3 * minuteMs
    second.count('k', 429, false)
    const lastUsed = now
    now += 3 * minuteMs
    first.count('k', 401, false)
    await Promise.all([first.close(), second.close()])
    const found = await readUsage(own.tables, databases, { key: 'k', now })
    expect(found.last_used).toBe(Math.floor(lastUsed / minuteMs) * minuteMs)
    expect(found.days).toHaveLength(30)
    expect(found.days.at(-1)?.day).toBe(new Date(now).toISOString().slice(0, 10))
    expect(found.days.reduce((sum, day) => sum + day.ok + day.too_many + day.unauthorized, 0)).toBe(3)
  })

  test('has a last use that is known for 90 days, beyond the 30 that are shown, and not said after them', async () => {
    const run = await startRun('first')
    run.count('k', 200, false)
    const lastUsed = now
    await run.close()
    now += 60 * dayMs
    const found = await readUsage(own.tables, databases, { key: 'k', now })
    expect(found.last_used).toBe(Math.floor(lastUsed / minuteMs) * minuteMs)
    expect(found.days.every(day => day.ok === 0)).toBe(true)
    now += 31 * dayMs
    for (const key of ['k', 'unused'])
      expect((await readUsage(own.tables, databases, { key, now })).last_used).toBeUndefined()
  })
})

describe('an answer of the API counts', () => {
  let app: TestApp
  let answered = 0
  const counted: [key: string, status: number][] = []

  beforeAll(async () => {
    app = await startTestApp({
      ...{ tables: fakeTables().tables, keyLimit: 12, addressLimit: 10 },
      overrides: {
        onRequestDone: () => void answered++,
        onKeyAnswered: (key, status) => void counted.push([key, status]),
      },
    })
  })
  afterAll(() => app.close())
  beforeEach(() => {
    answered = 0
    counted.length = 0
  })

  test('once for the key of its credentials, and a preflight for no key, even if it has credentials', async () => {
    const key = app.issue()
    const etag = (await app.get('/projects', key)).headers.get('etag') ?? ''
    await app.get('/projects', key, { 'If-None-Match': etag })
    for (const path of ['/projects/unknown', '/projects?limit=0', '/nowhere', '/projects/%E0%A4%A'])
      await app.get(path, key)
    for (const method of ['POST', 'OPTIONS'])
      await fetch(`http://127.0.0.1:${app.port}/api/v1/projects`, { method, headers: keyHeaders(key) })
    expect((await sendRaw(app.port, rawRequest('CONNECT example.com:80', key)))[0]?.status).toBe(405)
    // The limit of twelve: eight were admitted above.
    for (let request = 0; request < 6; request++) await app.get('/projects', key)
    await expect.poll(() => answered).toBe(15)
    expect(new Set(counted.map(([name]) => name))).toEqual(new Set([key.key]))
    const statuses = [...Array(5).fill(200), 304, 400, 400, 404, 404, 405, 405, 429, 429]
    expect(counted.map(([, status]) => status).toSorted()).toEqual(statuses)
  })

  test('for a key with a wrong secret only as its 401, and for no key that is revoked or does not exist', async () => {
    const key = app.issue()
    const wrong = { key: key.key, secret: generateSecret(count => new Uint8Array(count)) }
    const revoked = app.issue()
    app.revoke(revoked.key)
    const unknown = { key: `${key.key.slice(0, -4)}zzzz`, secret: key.secret }
    for (const credentials of [wrong, wrong, revoked, unknown, undefined])
      expect((await app.get('/stats', credentials)).status).toBe(401)
    expect((await app.get('/nowhere', wrong)).status).toBe(404)
    // The limit of the address is not the key's.
    for (let request = 0; request < 4; request++) await app.get('/nowhere')
    expect((await app.get('/stats', wrong)).status).toBe(429)
    await expect.poll(() => answered).toBe(11)
    expect(counted).toEqual([
      [key.key, 401],
      [key.key, 401],
    ])
  })
})
