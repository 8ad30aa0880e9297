/** Which answers of the API count for which key. The requests are real; the counts go through ClickHouse to the portal. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, generateSecret } from '../../../../services/api-keys/credentials.ts'
import { totalOf } from '../../../../services/portal/usage/usage-view.ts'
import type { UsageRecorder } from '../../../../services/query/usage/usage-recorder.ts'
import { defaultDatabases as databases } from '../../../../services/tables/generations.ts'
import { migrate } from '../../../../services/tables/schema/migrate.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse/clickhouse.ts'
import { keyHeaders, startTestApp, type TestApp } from '../../../support/query/app.ts'
import { fakeTables } from '../../../support/query/fake-tables.ts'
import { rawRequest, sendRaw } from '../../../support/query/raw-http.ts'
import { createTestRecorder, readUsage } from '../../../support/query/usage.ts'

const none = { ok: 0, not_modified: 0, unauthorized: 0, too_many: 0, other: 0, deprecated: 0 }

describe('the usage of a key', () => {
  let own: OwnTables
  let usage: UsageRecorder
  let app: TestApp
  let answered = 0

  beforeAll(async () => {
    own = await openOwnTables()
    await migrate(own.tables, databases)
    usage = createTestRecorder(own.tables, databases, 'p')
    app = await startTestApp({
      tables: fakeTables().tables,
      keyLimit: 12,
      addressLimit: 10,
      overrides: {
        onRequestDone: () => void answered++,
        onKeyAnswered: usage.count,
      },
    })
  })
  afterAll(async () => {
    await app.close()
    await usage.close()
    await own.close()
  })

  async function usageOf(key: string) {
    await usage.flush()
    const now = Date.now()
    return readUsage(own.tables, databases, { key, now })
  }

  const wrong = ({ key }: Credentials): Credentials => ({
    key,
    secret: generateSecret(count => new Uint8Array(count)),
  })

  test('has every answer to its credentials by outcome, once, and nothing of other requests', async () => {
    const key = app.issue()
    const other = app.issue()
    const before = answered
    const first = await app.get('/projects', key)
    const etag = first.headers.get('etag') ?? ''
    await app.get('/projects', key)
    await app.get('/projects', key, { 'If-None-Match': etag })
    for (const path of ['/projects/unknown', '/projects?limit=0', '/nowhere', '/projects/%E0%A4%A']) {
      await app.get(path, key)
    }
    await fetch(`http://127.0.0.1:${app.port}/api/v1/projects`, { method: 'POST', headers: keyHeaders(key) })
    // A preflight is counted for no key, even if it has credentials.
    await fetch(`http://127.0.0.1:${app.port}/api/v1/projects`, {
      method: 'OPTIONS',
      headers: keyHeaders(key),
    })
    expect((await sendRaw(app.port, rawRequest('CONNECT example.com:80', key)))[0]?.status).toBe(405)
    // The limit of twelve: nine were admitted above.
    for (let request = 0; request < 5; request++) await app.get('/projects', key)
    await expect.poll(() => answered - before).toBe(15)
    expect(totalOf((await usageOf(key.key)).days)).toEqual({
      ...none,
      ok: 5,
      not_modified: 1,
      too_many: 2,
      other: 6,
    })
    expect(totalOf((await usageOf(other.key)).days)).toEqual(none)
  })

  test('has the 401 to a wrong secret, which is no use of the key; a key that does not exist has nothing', async () => {
    const key = app.issue()
    const revoked = app.issue()
    app.revoke(revoked.key)
    const unknown = { key: `${key.key.slice(0, -4)}zzzz`, secret: key.secret }
    const before = answered
    for (const credentials of [wrong(key), wrong(key), revoked, unknown, undefined]) {
      expect((await app.get('/stats', credentials)).status).toBe(401)
    }
    expect((await app.get('/nowhere', wrong(key))).status).toBe(404)
    // The limit of the address is not the key's.
    for (let request = 0; request < 4; request++) await app.get('/nowhere')
    expect((await app.get('/stats', wrong(key))).status).toBe(429)
    await expect.poll(() => answered - before).toBe(11)
    const found = await usageOf(key.key)
    expect(totalOf(found.days)).toEqual({ ...none, unauthorized: 2 })
    expect(found.last_used).not.toBeTypeOf('number')
    for (const name of [revoked.key, unknown.key, '']) {
      expect(totalOf((await usageOf(name)).days), name).toEqual(none)
    }
  })
})
