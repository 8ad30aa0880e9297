import { expect, test } from 'vitest'
import { generationOf } from '../../../services/tables/generations.ts'
import { checkMigrated, readMigrations } from '../../../services/tables/migrate.ts'

const databases = generationOf({ base: 'm', views: 'v' }, 1)
const known = readMigrations(databases)

test('tables of an earlier version are refused before any work, and the files that have not run are named', async () => {
  const last = known.at(-1)
  await expect(checkMigrated(tablesWith(known.slice(0, -1)), databases)).rejects.toThrow(
    `the tables in m are not up to date (${last?.name}): run pledgeview migrate first`,
  )
  await expect(checkMigrated(tablesWith(undefined), databases)).rejects.toThrow('pledgeview migrate')
  await expect(checkMigrated(tablesWith(known), databases)).resolves.toBeUndefined()
})

/** Answers as tables on which these files have run; without them, there is no log of files. */
function tablesWith(done: readonly { number: number }[] | undefined) {
  return {
    rows: async <Row>({ query }: { query: string }) =>
      (query.includes('system.tables') ? [{ logs: done ? 1 : 0 }] : done) as Row[],
  }
}
