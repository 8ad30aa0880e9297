/** What the portal says of a key's last use, right to a minute as far as it was counted, and of its latest requests. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listDefaults } from '../../../../contracts/api/parameters.ts'
import { createRequestsReader, createUsageReader } from '../../../../services/portal/usage/usage-reader.ts'
import type { AnsweredRequest } from '../../../../services/query/http/request-log.ts'
import { defaultDatabases as databases } from '../../../../services/tables/generations.ts'
import { migrate } from '../../../../services/tables/schema/migrate.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse/clickhouse.ts'
import { createTestRecorder, readUsage } from '../../../support/query/usage.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

describe('the usage of a key', () => {
  let own: OwnTables
  let now: number

  beforeAll(async () => {
    own = await openOwnTables()
    await migrate(own.tables, databases)
  })
  afterAll(() => own.close())
  beforeEach(async () => {
    await own.tables.run({ query: `TRUNCATE TABLE ${databases.base}.api_key_usage` })
    now = Date.now()
  })

  async function startRun(process: string) {
    const run = createTestRecorder(own.tables, databases, process, { now: () => now })
    await run.start()
    return run
  }

  test('has its latest requests, with nothing that a client typed, and no more than its limit admits', async () => {
    const run = await startRun('first')
    const parameters = { ...listDefaults, category: 'pv_secret_1', limit: 2 }
    const list = { route: '/api/v1/projects', status: 200, parameters }
    const count = (key: string, request: Omit<AnsweredRequest, 'method' | 'admission' | 'isDeprecated'>) =>
      run.count(
        key,
        request.status,
        false,
        { ...request, method: 'GET', admission: null, isDeprecated: false },
        7.4,
      )
    count('k', { ...list, id: 'aa-1' })
    now += 1
    const detail = { route: '/api/v1/projects/:slug', status: 404, parameters: { slug: 'pv_secret_2' } }
    count('k', { ...detail, id: 'ab-2' })
    for (let n = 0; n < 130; n++) count('other', { ...list, id: `aa-other-${n}` })
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
    expect((await read([{ key: 'other' }], '')).endpoints).toMatchObject([{ requests: 120 }])
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
