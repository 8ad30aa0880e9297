/** What the portal says of a key's last use: right to a minute, and `never` only where that is known. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  defaultUsageRecorderOptions,
  type UsageRecorderDependencies,
} from '../../../../services/query/usage/usage-recorder.ts'
import { migrate } from '../../../../services/shared/tables/migrate.ts'
import { defaultDatabases as databases } from '../../../../services/shared/tables/port.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse.ts'
import { lostConnection } from '../../../support/faulty-tables.ts'
import { createTestRecorder, readUsage } from '../../../support/usage.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

describe('the last use of a key', () => {
  let own: OwnTables
  let now: number

  beforeAll(async () => {
    own = await openOwnTables()
    await migrate(own.tables, databases)
  })
  afterAll(() => own.close())
  beforeEach(async () => {
    for (const table of ['api_key_usage', 'usage_runs', 'api_keys']) {
      await own.tables.run({ query: `TRUNCATE TABLE ${databases.model}.${table}` })
    }
    now = Date.now()
  })

  async function startRun(process: string, settings: Partial<UsageRecorderDependencies> = {}) {
    const run = createTestRecorder({ tables: own.tables, databases, process, now: () => now, ...settings })
    await run.start()
    return run
  }

  /** Of a key without counts that was issued at this moment. */
  async function unusedSince(issuedAt: number, key = 'unused') {
    return (await readUsage(own.tables, databases, { key, issuedAt, now })).last_used
  }

  async function haveKey() {
    await own.tables.run({
      query: `INSERT INTO ${databases.model}.api_keys (api_key) SELECT 'k' SETTINGS async_insert = 0`,
    })
  }

  test('is the minute of the latest answer to its credentials, in whichever process', async () => {
    const first = await startRun('first')
    const second = await startRun('second')
    first.count('k', 200, false)
    now += 3 * minuteMs
    second.count('k', 429, false)
    const lastUsed = now
    now += 3 * minuteMs
    first.count('k', 401, false)
    await Promise.all([first.close(), second.close()])
    const found = await readUsage(own.tables, databases, { key: 'k', issuedAt: now, now })
    expect(found.last_used).toBe(Math.floor(lastUsed / minuteMs) * minuteMs)
    expect(found.days).toHaveLength(30)
    expect(found.days.at(-1)?.day).toBe(new Date(now).toISOString().slice(0, 10))
    expect(found.days.reduce((sum, day) => sum + day.ok + day.too_many + day.unauthorized, 0)).toBe(3)
  })

  test('is known beyond the 30 days that are shown', async () => {
    const run = await startRun('first')
    run.count('k', 200, false)
    const lastUsed = now
    await run.close()
    now += 60 * dayMs
    const found = await readUsage(own.tables, databases, { key: 'k', issuedAt: now, now })
    expect(found.last_used).toBe(Math.floor(lastUsed / minuteMs) * minuteMs)
    expect(found.days.every(day => day.ok === 0)).toBe(true)
  })

  test('is unknown while nothing was ever counted', async () => {
    expect(await unusedSince(now)).toBe('unknown')
  })

  test('is never only for a key that was issued after the counting began', async () => {
    await startRun('first')
    expect(await unusedSince(now)).toBe('never')
    expect(await unusedSince(now - 1)).toBe('unknown')
  })

  test('is not known for an hour if processes that do not count may still answer', async () => {
    await haveKey()
    await startRun('first')
    await startRun('second')
    const started = now
    expect(await unusedSince(started + hourMs - 1)).toBe('unknown')
    expect(await unusedSince(started + hourMs)).toBe('never')
  })

  test('is known at once if there is only one process', async () => {
    await haveKey()
    await startRun('first', { isOnlyProcess: true })
    expect(await unusedSince(now)).toBe('never')
  })

  test('is not never if a killed process may have answered: until an hour later, or until a process that is alone', async () => {
    await startRun('killed')
    const issued = now
    now += 10 * minuteMs
    const living = await startRun('living')
    living.count('other', 200, false)
    await living.flush()
    expect(await unusedSince(issued)).toBe('unknown')
    expect(await unusedSince(issued + hourMs - 1)).toBe('unknown')
    expect(await unusedSince(issued + hourMs)).toBe('never')
    await living.close()
    await startRun('alone', { isOnlyProcess: true })
    expect(await unusedSince(now - 1)).toBe('unknown')
    expect(await unusedSince(now)).toBe('never')
  })

  test('stays known over a clean restart', async () => {
    const issued = now
    await (await startRun('first')).close()
    now += dayMs
    await (await startRun('second')).close()
    expect(await unusedSince(issued)).toBe('never')
  })

  test('is not never while a process cannot write its counts, and right once it can', async () => {
    let isAway = false
    const tables = {
      rows: own.tables.rows,
      insert: async (...call: Parameters<typeof own.tables.insert>) => {
        if (isAway) throw lostConnection()
        await own.tables.insert(...call)
      },
    }
    const run = await startRun('first', { tables })
    isAway = true
    const issued = now
    run.count('k', 200, false)
    now += 2 * minuteMs
    expect(await run.flush()).toBe(false)
    expect(await unusedSince(issued, 'k')).toBe('unknown')
    isAway = false
    expect(await run.flush()).toBe(true)
    expect(await unusedSince(issued, 'k')).toBe(Math.floor(issued / minuteMs) * minuteMs)
    expect(await unusedSince(issued)).toBe('never')
  })

  test('is not never for a key that was issued before a process had to drop a count', async () => {
    const issued = now
    const run = await startRun('first', { options: { ...defaultUsageRecorderOptions, rowsMax: 1 } })
    run.count('a', 200, false)
    now += 10
    run.count('b', 200, false)
    await run.close()
    expect(await unusedSince(issued, 'b')).toBe('unknown')
    expect(await unusedSince(now, 'c')).toBe('never')
  })

  test('is not never for a key that is older than what the table keeps, and it is said since when it was not used', async () => {
    const issued = now
    await (await startRun('first')).close()
    now += 100 * dayMs
    const found = await readUsage(own.tables, databases, { key: 'k', issuedAt: issued, now })
    expect(found.last_used).toBe('unknown')
    expect(found.counted_since).toBe(now - 89 * dayMs)
  })
})
