import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  createKeyRing,
  defaultKeyRingOptions,
  type KeyRing,
  type KeyRingOptions,
  KeysUnavailableError,
} from '../../../services/query/key-ring.ts'
import { hashSecret } from '../../../services/shared/credentials.ts'
import type { Statement, Tables } from '../../../services/shared/tables/port.ts'
import { startTestApp, type TestClock, testClock } from '../../support/query-app.ts'
import { fakeTables } from '../../support/query-fake-tables.ts'
import { type KeyRow, openQueryTables, type QueryTables } from '../../support/query-tables.ts'

let store: QueryTables
let clock: TestClock
let statements: Statement[]
/** Set to make the tables fail. */
let outage: Error | undefined
const errors: unknown[] = []
const rings: KeyRing[] = []

beforeAll(async () => {
  store = await openQueryTables()
})
afterAll(() => store.close())
beforeEach(() => {
  clock = testClock()
  statements = []
  outage = undefined
  errors.length = 0
})
afterEach(async () => {
  await Promise.all(rings.splice(0).map(ring => ring.close()))
  await store.clear()
})

const keyRow = (api_key: string, fields: Partial<KeyRow> = {}): KeyRow => ({
  api_key,
  secret_hash: hashSecret('pepper', api_key),
  scopes: ['read:public'],
  is_active: true,
  ...fields,
})

function openRing(options: Partial<KeyRingOptions> = {}): KeyRing {
  const tables: Pick<Tables, 'rows'> = {
    rows: async (statement, call) => {
      if (outage) throw outage
      statements.push(statement)
      return store.tables.rows(statement, call)
    },
  }
  const ring = createKeyRing({
    tables,
    databases: store.databases,
    options: { ...defaultKeyRingOptions, pollMs: 5, ...options },
    now: clock.now,
    onError: error => errors.push(error),
  })
  rings.push(ring)
  return ring
}

const loads = () => statements.filter(({ query }) => !query.includes('fingerprint')).length
/** Returns once the ring has looked at the table again, that many times. */
async function polled(times: number): Promise<void> {
  const looked = statements.length + errors.length
  await vi.waitFor(() => expect(statements.length + errors.length).toBeGreaterThanOrEqual(looked + times), {
    timeout: 5000,
    interval: 5,
  })
}

describe('the key ring', () => {
  it('knows the active keys once it has started, and nothing of the others', async () => {
    await store.putKeys([keyRow('a', { scopes: ['x', 'y'] }), keyRow('b', { is_active: false })])
    const ring = openRing()
    expect(() => ring.lookup('a')).toThrow(KeysUnavailableError)
    await ring.start()
    expect(ring.lookup('a')).toEqual({ key: 'a', secretHash: hashSecret('pepper', 'a'), scopes: ['x', 'y'] })
    expect(ring.lookup('b')).toBeUndefined()
    expect(ring.lookup('')).toBeUndefined()
    expect(ring.isReady()).toBe(true)
  })

  it('follows keys that are issued, revoked, deleted and changed', async () => {
    await store.putKeys([keyRow('revoked'), keyRow('deleted'), keyRow('changed')])
    const ring = openRing()
    await ring.start()
    await store.putKeys([
      keyRow('issued'),
      keyRow('revoked', { is_active: false }),
      keyRow('deleted', { is_deleted: 1 }),
      keyRow('changed', { scopes: [] }),
    ])
    await expect.poll(() => ring.lookup('issued')).toBeDefined()
    expect(ring.lookup('revoked')).toBeUndefined()
    expect(ring.lookup('deleted')).toBeUndefined()
    expect(ring.lookup('changed')?.scopes).toEqual([])
  })

  it('follows within two seconds with the default pauses, over HTTP', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRing({ pollMs: defaultKeyRingOptions.pollMs })
    await ring.start()
    const app = await startTestApp({
      tables: fakeTables().tables,
      options: { pepper: 'pepper' },
      overrides: { keyRing: ring },
    })
    try {
      const credentials = { key: 'a', secret: 'a' }
      expect((await app.get('/stats', credentials)).status).toBe(200)
      await store.putKeys([keyRow('a', { is_active: false })])
      await vi.waitFor(async () => expect((await app.get('/stats', credentials)).status).toBe(401), {
        timeout: 2000,
        interval: 100,
      })
    } finally {
      await app.close()
    }
  })

  it('notices a row that arrives late under a lower fold id', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRing()
    await ring.start()
    await store.tables.run({
      query: `INSERT INTO ${store.databases.model}.api_keys
        SELECT 'late', 'account', '${hashSecret('pepper', 'late')}', [], true, now64(3), 0, 0
        SETTINGS async_insert = 0`,
    })
    await expect.poll(() => ring.lookup('late')).toBeDefined()
  })

  it('loads the keys only when they have changed, and now and then all the same', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRing()
    await ring.start()
    await polled(5)
    expect(loads()).toBe(1)
    clock.advance(defaultKeyRingOptions.reloadMsMax)
    await expect.poll(() => loads()).toBe(2)
  })

  it('trusts the last known keys for a bounded time while the tables are away, and says that it is not ready', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRing()
    await ring.start()
    outage = new Error('away')
    await polled(2)
    expect(ring.isReady()).toBe(true)
    clock.advance(defaultKeyRingOptions.freshMsMax + 1)
    expect(ring.isReady()).toBe(false)
    expect(ring.lookup('a')).toBeDefined()
    clock.advance(defaultKeyRingOptions.staleMsMax)
    expect(() => ring.lookup('a')).toThrow(KeysUnavailableError)
    expect(() => ring.lookup('nobody')).toThrow(KeysUnavailableError)
    expect(errors).toContain(outage)
    outage = undefined
    await expect.poll(() => ring.isReady()).toBe(true)
    expect(ring.lookup('a')).toBeDefined()
  })

  it('starts without the tables, and is ready once they are there', async () => {
    await store.putKeys([keyRow('a')])
    outage = new Error('away')
    const ring = openRing()
    await ring.start()
    expect(ring.isReady()).toBe(false)
    expect(() => ring.lookup('a')).toThrow(KeysUnavailableError)
    outage = undefined
    await expect.poll(() => ring.lookup('a')).toBeDefined()
  })

  it('gives up on a look that takes too long, and looks again', async () => {
    let hung = 0
    const ring = createKeyRing({
      tables: {
        rows: (statement, call) => {
          if (hung++ > 0) return store.tables.rows(statement, call)
          return new Promise((_, reject) => {
            call?.signal?.addEventListener('abort', () => reject(call.signal?.reason))
          })
        },
      },
      databases: store.databases,
      options: { ...defaultKeyRingOptions, pollMs: 5, pollMsMax: 50 },
      now: clock.now,
      onError: error => errors.push(error),
    })
    rings.push(ring)
    await ring.start()
    expect(ring.isReady()).toBe(false)
    expect(errors).toHaveLength(1)
    await expect.poll(() => ring.isReady()).toBe(true)
  })

  it('asks nothing any more once it is closed', async () => {
    const ring = openRing()
    await ring.start()
    await polled(1)
    await ring.close()
    const asked = statements.length
    await new Promise(resolve => setImmediate(resolve))
    expect(statements.length).toBe(asked)
    expect(errors).toEqual([])
  })
})
