/** How the portal reads tables. */
import { expect, test } from 'vitest'
import { readRows } from '../../../services/portal/reading.ts'
import { defaultDatabases } from '../../../services/tables/generation-log.ts'
import type { Statement } from '../../../services/tables/port.ts'

test('each read ends in ClickHouse after its time, whether its text has settings or none', async () => {
  const sent: string[] = []
  async function rows<Row>({ query }: Statement): Promise<Row[]> {
    sent.push(query.replaceAll(/\s+/g, ' '))
    return []
  }
  const place = { tables: { rows }, databases: defaultDatabases }
  await readRows(place, 'SELECT 1 FROM ${base}.freshness\n')
  await readRows(place, 'SELECT 1\nSETTINGS max_threads = 2\n', {}, 60_000)
  expect(sent).toEqual([
    'SELECT 1 FROM pledgeview.freshness SETTINGS max_execution_time = 10',
    'SELECT 1 SETTINGS max_threads = 2 , max_execution_time = 60',
  ])
})
