import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { hashSecret } from '../../../../services/api-keys/credentials.ts'
import {
  createKeyRing,
  defaultKeyRingOptions,
  type KeyRing,
  type KeyRingOptions,
} from '../../../../services/query/auth/key-ring.ts'
import { sleep } from '../../../../services/runtime/async/sleep.ts'
import type { CallOptions, Statement, Tables } from '../../../../services/tables/port.ts'
import { type TestClock, testClock } from '../../../support/query/app.ts'
import { type KeyRow, openQueryTables, type QueryTables } from '../../../support/query/tables.ts'

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
  // ClickHouse ends what the ring no longer waits for.
  for (const { query } of statements) expect(query).toMatch(/SETTINGS max_execution_time = \d+$/)
})

const keyRow = (api_key: string, fields: Partial<KeyRow> = {}): KeyRow => ({
  api_key,
  secret_hash: hashSecret('pepper', api_key),
  scopes: ['read:public'],
  is_active: true,
  ...fields,
})

/** Polls often. A busy machine is no failure: no statement is cut because it takes a second. */
const patientOptions: KeyRingOptions = {
  ...defaultKeyRingOptions,
  pollMs: 5,
  pollMsMax: defaultKeyRingOptions.readMsMax,
}

function openRing(options: Partial<KeyRingOptions> = {}): KeyRing {
  const tables: Pick<Tables, 'rows'> = {
    rows: async (statement, call) => {
      if (outage) throw outage
      statements.push(statement)
      return store.tables.rows(statement, call)
    },
  }
  return openRingOver(tables, options)
}

function openRingOver(tables: Pick<Tables, 'rows'>, options: Partial<KeyRingOptions>): KeyRing {
  const onError = (error: unknown) => errors.push(error)
  const context = { tables, databases: store.databases, monotonicMs: clock.now, sleep, onError }
  const ring = createKeyRing({ ...patientOptions, ...options }, context)
  rings.push(ring)
  return ring
}

const loads = () => statements.filter(({ query }) => query.includes('ORDER BY api_key')).length
/** Resolves when the ring has polled the table that many more times. */
async function polled(times: number): Promise<void> {
  const looked = statements.length + errors.length
  await vi.waitFor(() => expect(statements.length + errors.length).toBeGreaterThanOrEqual(looked + times), {
    timeout: 20_000,
    interval: 5,
  })
}

describe('the key ring', () => {
  it('knows the active keys after its start and no others, and follows those that are issued, revoked, deleted and changed', async () => {
    await store.putKeys([keyRow('revoked'), keyRow('deleted'), keyRow('changed', { scopes: ['x', 'y'] })])
    await store.putKeys([keyRow('inactive', { is_active: false })])
    const ring = openRing()
    expect(() => ring.lookup('changed')).toThrow('the keys are not known')
    await ring.start()
    const secretHash = hashSecret('pepper', 'changed')
    expect(ring.lookup('changed')).toEqual({ key: 'changed', secretHash, scopes: ['x', 'y'] })
    for (const key of ['inactive', 'issued', '']) expect(ring.lookup(key)).toBeUndefined()
    expect(ring.isFresh()).toBe(true)
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

  it('loads the keys when they have changed, and at least once per reload period', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRing()
    await ring.start()
    await polled(5)
    expect(loads()).toBe(1)
    clock.advance(defaultKeyRingOptions.reloadMsMax)
    await expect.poll(() => loads()).toBe(2)
  })

  it('looks as often after looks that took long, and no whole number of milliseconds', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRingOver(
      {
        rows(statement, call) {
          statements.push(statement)
          clock.advance(4_000.3)
          return store.tables.rows(statement, call)
        },
      },
      { pollMsMax: 5_000 },
    )
    await ring.start()
    await polled(5)
    expect(errors).toEqual([])
  })

  it('trusts the last known keys for a bounded time while the tables are unavailable, and is not fresh', async () => {
    await store.putKeys([keyRow('a')])
    const ring = openRing()
    await ring.start()
    outage = new Error('unavailable')
    await polled(2)
    expect(ring.isFresh()).toBe(true)
    clock.advance(defaultKeyRingOptions.freshMsMax + 1)
    expect(ring.isFresh()).toBe(false)
    expect([ring.isKnown(), ring.lookup('a')?.key]).toEqual([true, 'a'])
    clock.advance(defaultKeyRingOptions.staleMsMax)
    expect(ring.isKnown()).toBe(false)
    expect(() => ring.lookup('a')).toThrow('the keys are not known')
    expect(() => ring.lookup('unknown')).toThrow('the keys are not known')
    expect(errors).toContain(outage)
    outage = undefined
    await expect.poll(() => ring.isFresh()).toBe(true)
    expect(ring.lookup('a')).toBeDefined()
  })

  describe('with a large or slow key table', () => {
    const keyCount = 4_000
    const read: number[] = []
    let looks = 0

    /** Inserts keys `key 0`, `key 1` and so on. The secret of each is its name. */
    async function putMany(count: number): Promise<void> {
      await store.tables.run({
        query: `INSERT INTO ${store.databases.base}.api_keys
          SELECT concat('key ', toString(number)), 'account', lower(hex(SHA256(toString(number)))), ['read:public'],
            true, now64(3), 1, 0 FROM numbers({count:UInt64}) SETTINGS async_insert = 0`,
        query_params: { count },
      })
    }

    /** A ring whose tables need `rowMs` for each row that a statement returns. `faults` fail the first statements. */
    function openSlowRing(
      rowMs: number,
      options: Partial<KeyRingOptions>,
      isFault: (times: number) => boolean | Promise<boolean> = () => false,
    ) {
      read.length = 0
      const tables: Pick<Tables, 'rows'> = {
        async rows<Row>(statement: Statement, call?: CallOptions) {
          const rows = await store.tables.rows<Row>(statement, call)
          if (statement.query.includes('max(fold_id)')) {
            looks++
            return rows
          }
          await delay(rows.length * rowMs, undefined, call?.signal ? { signal: call.signal } : {})
          if (await isFault(read.push(rows.length))) throw new Error('the connection was lost')
          return rows
        },
      }
      return openRingOver(tables, options)
    }

    it('reads a small part of them when one is revoked', async () => {
      await putMany(keyCount)
      const ring = openSlowRing(0, {})
      await ring.start()
      read.length = 0
      await store.putKeys([keyRow('key 7', { is_active: false })])
      await expect.poll(() => ring.lookup('key 7')).toBeUndefined()
      expect(read.reduce((sum, rows) => sum + rows, 0)).toBeLessThan(10)
      expect(ring.lookup('key 8')).toBeDefined()
    })

    it('knows every key, though all together take longer than one statement may, and goes on with a load where it failed', async () => {
      await putMany(keyCount)
      // All keys take 4 s, a page 0.5 s.
      const bounds = { pollMsMax: 3_000, readMsMax: 3_000, pageKeysMax: keyCount / 8 }
      const ring = openSlowRing(1, bounds, times => times % 2 === 0)
      await ring.start()
      expect(errors).toHaveLength(1)
      expect(() => ring.lookup('another')).toThrow('the keys are not known')
      const known = Array.from({ length: keyCount }, (_, n) => `key ${n}`).filter(name => isKnown(ring, name))
      expect(known.length).toBeGreaterThan(keyCount / 20)
      expect(known.length).toBeLessThan(keyCount / 2)
      await expect.poll(() => ring.isFresh()).toBe(true)
      for (let n = 0; n < keyCount; n++) expect(ring.lookup(`key ${n}`)).toBeDefined()
      expect(ring.lookup('another')).toBeUndefined()
      // Each page is read once, and the failed half of them once more.
      expect(read.length).toBeLessThan(3 * 8)
      expect(Math.max(...read)).toBeLessThan(keyCount / 4)
    })

    it('keeps valid keys valid while ClickHouse answers, however long a load takes', async () => {
      await putMany(keyCount)
      let isLoaded = false
      let lookups = 0
      const ring = openSlowRing(0, { pageKeysMax: 400 }, async () => {
        // It throws if the key is not known. Then the load fails, which is in the errors.
        if (isLoaded) expect(ring.lookup('key 1')).toBeDefined()
        if (isLoaded) lookups++
        // Between two pages nearly the whole time passes for which nothing may be read.
        clock.advance(defaultKeyRingOptions.staleMsMax - 1_000)
        // A look was under way, and another one is made meanwhile.
        const looked = looks
        await vi.waitFor(() => expect(looks).toBeGreaterThan(looked + 1), { interval: 1, timeout: 20_000 })
        return false
      })
      await ring.start()
      expect(ring.lookup('key 1')).toBeDefined()
      isLoaded = true
      // Another number of keys under the same fold id: all of them are loaded again.
      for (const change of [
        `UPDATE scopes = ['read:public', 'more'] WHERE true`,
        `DELETE WHERE api_key = 'key 2'`,
      ])
        await store.tables.run({
          query: `ALTER TABLE ${store.databases.base}.api_keys ${change} SETTINGS mutations_sync = 2`,
        })
      await vi.waitFor(
        () => {
          expect(ring.lookup('key 1')?.scopes).toEqual(['read:public', 'more'])
          expect(ring.lookup(`key ${keyCount - 1}`)?.scopes).toEqual(['read:public', 'more'])
        },
        { timeout: 20_000, interval: 1 },
      )
      expect(lookups).toBeGreaterThan(1)
      expect(errors).toEqual([])
    })

    it('waits longer for a slow poll each time, and polls again', async () => {
      await putMany(10)
      let waits = 0
      const tables: Pick<Tables, 'rows'> = {
        async rows<Row>(statement: Statement, call?: CallOptions) {
          if (statement.query.includes('max(fold_id)')) {
            waits++
            await delay(300, undefined, call?.signal ? { signal: call.signal } : {})
          }
          return store.tables.rows<Row>(statement)
        },
      }
      const ring = openRingOver(tables, { pollMsMax: 20 })
      await ring.start()
      expect(ring.isFresh()).toBe(false)
      expect(errors.length).toBeGreaterThan(0)
      await expect.poll(() => ring.isFresh()).toBe(true)
      expect(ring.lookup('key 1')).toBeDefined()
      expect(waits).toBeGreaterThan(2)
    })
  })
})

function isKnown(ring: KeyRing, key: string): boolean {
  try {
    return ring.lookup(key) !== undefined
  } catch {
    return false
  }
}
