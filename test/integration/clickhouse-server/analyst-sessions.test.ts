/** A session of an analyst belongs to no query: it has no bound of its own, and a request keeps it alive. So it holds little. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EmbeddedTables } from '../../../services/embedded/tables.ts'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { makeTestDirectory, type TestDirectory } from '../../support/clickhouse/embedded-tables.ts'

let directory: TestDirectory
let opened: EmbeddedTables

beforeAll(async () => {
  directory = makeTestDirectory()
  opened = await directory.open({ environment: { PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX: '600000000' } })
})

afterAll(async () => {
  await opened.close()
  directory.remove()
})

test.each([
  ['a comment', {}, `SET log_comment = 'x'`, /log_comment/],
  ['a long query', { max_query_size: '100000000' }, 'SELECT 1', /max_query_size/],
  ['a time of more than seconds', { session_timeout: '6' }, 'SELECT 1', /session.timeout/i],
])('%s is refused', async (_, parameters, query, reason) => {
  const { status, text } = await ask(query, { session_id: `held-${reason}`, ...parameters })
  expect(status).not.toBe(200)
  expect(text).toMatch(reason)
})

test('sessions that fill the memory end with a restart, and the program reads on', async () => {
  const pid = opened.clickHouse.pid()
  const value = 'x'.repeat(3_500_000)
  const over = new AbortController()
  async function fill(session: number): Promise<void> {
    const parameters = { session_id: `s${session}`, max_query_size: 4_194_304 }
    for (let n = 0; !over.signal.aborted; n++)
      await ask(`SET param_p${n} = '${value}'`, parameters, 5_000).catch(() => sleep(50))
  }
  const filling = Promise.all(Array.from({ length: 8 }, (_, session) => fill(session)))
  await expect.poll(() => opened.clickHouse.pid(), { timeout: 100_000 }).not.toBe(pid)
  over.abort()
  await filling
  await expect.poll(() => opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
  await expect
    .poll(async () => (await ask('SELECT 1', {}).catch(String)) as unknown)
    .toMatchObject({ text: '1\n' })
})

function ask(query: string, parameters: Record<string, string | number>, msMax?: number) {
  return askAsAnalyst(opened.door?.url ?? '', query, { parameters, ...(msMax !== undefined && { msMax }) })
}
