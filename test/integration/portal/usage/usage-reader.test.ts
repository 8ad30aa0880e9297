/** What the portal says of a key's last use: right to a minute, as far as it was counted. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { defaultDatabases as databases } from '../../../../services/tables/generations.ts'
import { migrate } from '../../../../services/tables/migrate.ts'
import { type OwnTables, openOwnTables } from '../../../support/clickhouse/clickhouse.ts'
import { createTestRecorder, readUsage } from '../../../support/query/usage.ts'

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
    await own.tables.run({ query: `TRUNCATE TABLE ${databases.base}.api_key_usage` })
    now = Date.now()
  })

  async function startRun(process: string) {
    const run = createTestRecorder(own.tables, databases, process, { now: () => now })
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

  test('is known for 90 days, beyond the 30 that are shown, and not said after them', async () => {
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
