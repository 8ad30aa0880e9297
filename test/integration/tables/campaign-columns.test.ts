/** The list of a campaign's columns and the SQL that defines the tables say the same. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { campaignColumns } from '../../../contracts/tables/campaign-columns.ts'
import { withCampaignFields } from '../../../contracts/tables/campaign-sql.ts'
import { defaultDatabases } from '../../../services/tables/generations.ts'
import { migrate, nameDatabases } from '../../../services/tables/schema/migrate.ts'
import { type OwnTables, openOwnTables } from '../../support/clickhouse/clickhouse.ts'

interface TableColumn {
  name: string
  type: string
}

const databases = defaultDatabases
let own: OwnTables

beforeAll(async () => {
  own = await openOwnTables()
  await migrate(own.tables, databases)
})

afterAll(() => own.close())

async function columnsOf(database: string, table: string): Promise<TableColumn[]> {
  return own.tables.rows({
    query: `SELECT name, type FROM system.columns
            WHERE database = {database:String} AND table = {table:String} ORDER BY position`,
    query_params: { database, table },
  })
}

describe('the list of content columns', () => {
  const listed = campaignColumns.map(({ name, type }): TableColumn => ({ name, type }))
  const updatedAt: TableColumn = { name: 'updated_at', type: "DateTime64(3, 'UTC')" }
  // For tools that cannot sum a Decimal. Only data teams see them.
  const floats = ['goal', 'goal_platform', 'pledged', 'pledged_platform', 'percent'].map(
    (name): TableColumn => ({ name, type: name === 'goal_platform' ? 'Nullable(Float64)' : 'Float64' }),
  )

  test('names every column of the view except the floating-point ones, with its type and in its order', async () => {
    const columns = await columnsOf(databases.views, 'campaigns')
    const isFloat = ({ type }: TableColumn) => type.includes('Float64')
    expect(columns.filter(column => !isFloat(column))).toEqual([...listed, updatedAt])
    expect(columns.filter(isFloat)).toEqual(floats)
  })

  test('names every column of the read table that a reader can see', async () => {
    const hidden = new Set([
      ...['creator_id', 'content_hash', 'updated_at', 'fold_id', 'is_deleted', 'was_public'],
      ...['list_fields', 'reward_fields'],
    ])
    const columns = await columnsOf(databases.read, 'campaigns')
    expect(columns.filter(({ name }) => !hidden.has(name))).toEqual(listed)
  })

  test('copies from the ledger only what the ledger has, with the same type', async () => {
    const ledger = await columnsOf(databases.ledger, 'campaign_ledger')
    const copied = campaignColumns.filter(({ from }) => from === 'ledger')
    expect(ledger).toEqual(expect.arrayContaining(copied.map(({ name, type }) => ({ name, type }))))
  })

  test('is added to tables of an earlier version by the migration of a new field', async () => {
    const { ledger, read, views } = databases
    const all = () =>
      Promise.all([
        columnsOf(ledger, 'campaign_ledger'),
        columnsOf(read, 'campaigns'),
        columnsOf(views, 'campaigns'),
      ])
    const before = await all()
    await run(
      `ALTER TABLE ${read}.campaigns MODIFY COLUMN list_fields String MATERIALIZED '{}'`,
      `ALTER TABLE ${read}.campaigns DROP COLUMN subtitle`,
      `ALTER TABLE ${ledger}.campaign_ledger DROP COLUMN subtitle`,
    )
    expect(await all()).not.toEqual(before)
    // As in a file below contracts/tables/generation.
    await run(...nameDatabases(withCampaignFields('${campaign_fields}'), databases).split(';\n'))
    expect(await all()).toEqual(before)
    expect(await own.tables.rows({ query: `SELECT subtitle FROM ${views}.campaigns` })).toEqual([])
  })
})

async function run(...statements: string[]): Promise<void> {
  for (const query of statements) await own.tables.run({ query })
}
