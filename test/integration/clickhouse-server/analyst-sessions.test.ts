/** A session of an analyst belongs to no query: it has no bound of its own, and a request keeps it alive. So it holds little. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { askAsAnalyst } from '../../support/clickhouse/analyst.ts'
import { makeTestDirectory } from '../../support/clickhouse/embedded-tables.ts'

test('sessions that fill the memory end with a restart, and the program reads on', async () => {
  const directory = makeTestDirectory()
  onTestFinished(directory.remove)
  const opened = await directory.open({
    environment: { PLEDGEVIEW_CLICKHOUSE_MEMORY_BYTES_MAX: '600000000' },
  })
  onTestFinished(opened.close)
  const ask = (query: string, parameters: Record<string, string | number> = {}) =>
    askAsAnalyst(opened.door?.url ?? '', query, { parameters, msMax: 5_000 })
  const pid = opened.clickHouse.pid()
  const value = 'x'.repeat(3_500_000)
  const over = new AbortController()
  async function fill(session: number): Promise<void> {
    const parameters = { session_id: `s${session}`, max_query_size: 4_194_304 }
    for (let n = 0; !over.signal.aborted; n++)
      await ask(`SET param_p${n} = '${value}'`, parameters).catch(() => sleep(50))
  }
  const filling = Promise.all(Array.from({ length: 8 }, (_, session) => fill(session)))
  await expect.poll(() => opened.clickHouse.pid(), { timeout: 100_000 }).not.toBe(pid)
  over.abort()
  await filling
  await expect.poll(() => opened.tables.rows({ query: 'SELECT 1 AS one' })).toEqual([{ one: 1 }])
  await expect
    .poll(async () => (await ask('SELECT 1').catch(String)) as unknown)
    .toMatchObject({ text: '1\n' })
})
