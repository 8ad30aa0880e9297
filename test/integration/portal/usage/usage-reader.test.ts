/** What the portal says of a key's last use: right to a minute, as far as it was counted. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { migrate } from '../../../../services/tables/migrate.ts'
import { defaultDatabases as databases, type Tables } from '../../../../services/tables/port.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse.ts'
import { lostConnection } from '../../../support/faulty-tables.ts'
import { createTestRecorder, readUsage } from '../../../support/usage.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

describe('the last use of a key', () => {
  let own: OwnTables
  let now: number

  beforeAll(async () => {
    own = await openOwnTables()
    await migrate(own.tables, databases)
  })
  afterAll(() => own.close())
  beforeEach(async () => {
    await own.tables.run({ query: `TRUNCATE TABLE ${databases.model}.api_key_usage` })
    now = Date.now()
  })

  async function startRun(process: string, tables: Pick<Tables, 'insert'> = own.tables) {
    const run = createTestRecorder(tables, databases, process, { now: () => now })
    await run.start()
    return run
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
    const found = await readUsage(own.tables, databases, { key: 'k', now })
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
    const found = await readUsage(own.tables, databases, { key: 'k', now })
    expect(found.last_used).toBe(Math.floor(lastUsed / minuteMs) * minuteMs)
    expect(found.days.every(day => day.ok === 0)).toBe(true)
  })

  test('is not said for a key without a counted use in the last 90 days', async () => {
    const run = await startRun('first')
    run.count('k', 200, false)
    await run.close()
    now += 91 * dayMs
    for (const key of ['k', 'unused'])
      expect((await readUsage(own.tables, databases, { key, now })).last_used).toBeUndefined()
  })

  test('is there once a process that could not write its counts can', async () => {
    let isAway = true
    const tables = {
      insert: async (...call: Parameters<typeof own.tables.insert>) => {
        if (isAway) throw lostConnection()
        await own.tables.insert(...call)
      },
    }
    const run = await startRun('first', tables)
    run.count('k', 200, false)
    const used = now
    now += 2 * minuteMs
    expect(await run.flush()).toBe(false)
    isAway = false
    expect(await run.flush()).toBe(true)
    const found = await readUsage(own.tables, databases, { key: 'k', now })
    expect(found.last_used).toBe(Math.floor(used / minuteMs) * minuteMs)
  })
})
