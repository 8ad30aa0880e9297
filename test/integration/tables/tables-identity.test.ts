import { describe, expect, test } from 'vitest'
import {
  holdTablesId,
  holdTablesIdentity,
  IdentityDiffers,
  readTablesId,
} from '../../../services/tables/schema/identity.ts'
import { useModelTables } from '../../support/projector/use-model-tables.ts'

describe('the identity of tables', () => {
  const model = useModelTables()

  test('is that of the first writer: another secret or currency is refused, and the secret is not kept', async () => {
    const databases = await model.freshDatabases()
    const own = { PLEDGEVIEW_BACKER_KEY: 'a'.repeat(64), PLEDGEVIEW_PLATFORM_CURRENCY: 'EUR' }
    await holdTablesIdentity(model.tables, databases, own)
    await holdTablesIdentity(model.tables, databases, own)
    for (const other of [
      { PLEDGEVIEW_BACKER_KEY: 'b'.repeat(64) },
      { PLEDGEVIEW_PLATFORM_CURRENCY: 'USD' },
    ]) {
      await expect(holdTablesIdentity(model.tables, databases, { ...own, ...other })).rejects.toBeInstanceOf(
        IdentityDiffers,
      )
    }
    const rows = await model.tables.rows({ query: `SELECT * FROM ${databases.base}.identity` })
    expect(JSON.stringify(rows)).not.toContain('a'.repeat(64))
  })

  test('tables keep the id that they were given first, and all processes read the same', async () => {
    const databases = await model.freshDatabases()
    expect(await readTablesId(model.tables, databases)).toBeNull()
    await Promise.all(['b', 'a', 'c'].map(id => holdTablesId(model.tables, databases, id)))
    const id = await readTablesId(model.tables, databases)
    await holdTablesId(model.tables, databases, '0')
    expect(await readTablesId(model.tables, databases)).toBe(id)
    const others = await model.freshDatabases()
    await holdTablesId(model.tables, others, 'd')
    expect(await readTablesId(model.tables, others)).toBe('d')
  })
})
