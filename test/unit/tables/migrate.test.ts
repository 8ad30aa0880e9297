/** A migration over a connection that is lost now and then. */
import { expect, test } from 'vitest'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { type Statement, type Tables, TablesError } from '../../../services/tables/port.ts'
import { migrate, readMigrations } from '../../../services/tables/schema/migrate.ts'

const lost = new TablesError('no answer from ClickHouse: ECONNRESET', { retryable: true })
const refused = new TablesError('Not enough memory', { retryable: true, type: 'MEMORY_LIMIT_EXCEEDED' })

/** Tables without anything, which note what they are asked. Some of the writes fail, counted from 0. */
function tablesThatFail(failures: ReadonlyMap<number, Error>): { tables: Tables; written: string[] } {
  const written: string[] = []
  let writes = 0
  async function write(what: string): Promise<void> {
    const failure = failures.get(writes++)
    if (failure) throw failure
    written.push(what)
  }
  const tables: Tables = {
    // There is no generation. Once one is registered, it is the current one.
    rows: async <Row>({ query }: Statement) =>
      (query.includes('generation_log') && !query.includes('registered') ? [{ generation: 1 }] : []) as Row[],
    run: ({ query }) => write(query),
    insert: ({ table }) => write(table),
    close: async () => {},
  }
  return { tables, written }
}

test('a statement whose connection was lost is repeated, and nothing is left out', async () => {
  const all = tablesThatFail(new Map())
  const names = await migrate(all.tables, defaultDatabases)
  expect(names).toEqual(readMigrations(defaultDatabases).map(({ name }) => name))
  const log = all.written.indexOf(`${defaultDatabases.base}.migrations`)
  for (const lostAt of [0, log, all.written.length - 1]) {
    const { tables, written } = tablesThatFail(new Map([[lostAt, lost]]))
    expect(await migrate(tables, defaultDatabases)).toEqual(names)
    expect(written).toEqual(all.written)
  }
})

test('a connection that stays lost, and an answer of ClickHouse, end the migration', async () => {
  const away = tablesThatFail(new Map([3, 4, 5].map(write => [write, lost])))
  await expect(migrate(away.tables, defaultDatabases)).rejects.toBe(lost)
  const full = tablesThatFail(new Map([[3, refused]]))
  await expect(migrate(full.tables, defaultDatabases)).rejects.toBe(refused)
  expect(full.written).toHaveLength(3)
})
