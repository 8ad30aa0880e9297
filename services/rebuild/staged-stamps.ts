/**
 * What `takeStamps` knows of the other tables, staged beside these: the stamps and hashes of their campaigns, and the versions of
 * their campaigns and keys.
 *
 * The staged tables belong to a run: another run makes its own, and drops those of earlier runs. A run whose tables are dropped
 * fails; it never uses a part of them. They hold ids and hashes, so a run drops them at its end, and a purge those that a killed
 * run left.
 */

import type { Shard, Tables } from '../shared/tables/port.ts'
import { readSql } from '../shared/tables/read-sql.ts'
import { encodeRows } from '../shared/tables/row-binary.ts'
import { onEach, type RebuildTables } from './cluster.ts'
import { type Ledger, ledgers } from './ledgers.ts'

/** The names of the staged tables in the model's database of each place. */
export interface Staged {
  stamps: string
  versions: string
}

export interface Compared {
  /** Public here, but deleted, hidden or revoked there by the same or a newer event. */
  withdrawn: number
  withdrawnIds: string[]
  /** In the other tables, but not here, or here in an older version, or not shown here yet. */
  missing: number
  missingIds: string[]
}

export interface StampCounts {
  same: number
  different: number
}

const prefix = 'taken_'
const rowsPerPage = 20_000
const rowsPerSlice = 500_000
const namesMax = 5

const files = {
  campaigns: readSql('compare-campaigns', import.meta.url),
  keys: readSql('compare-keys', import.meta.url),
}

const stampColumns = [
  { name: 'campaign_id', type: 'String' },
  { name: 'hash', type: 'String' },
  { name: 'stamp', type: 'Int64' },
]
const versionColumns = [
  { name: 'ledger', type: 'String' },
  { name: 'id', type: 'String' },
  { name: 'version', type: 'UInt64' },
  { name: 'is_withdrawn', type: 'Bool' },
]

/** The names of what this run stages. */
export function stagedOf(run: string): Staged {
  const name = `${prefix}${run.replace(/\W/g, '_')}`
  return { stamps: `${name}_stamps`, versions: `${name}_versions` }
}

/** Every place gets all stamps, and uses those of its own campaigns. Only the first place gets the versions. */
export async function stage(from: readonly Shard[], places: readonly Shard[], run: string): Promise<Staged> {
  const staged = stagedOf(run)
  await onEach(places, async place => {
    await dropStaged(place)
    const create = (table: string, columns: string, order: string) =>
      place.tables.run({
        query: `CREATE TABLE ${place.databases.model}.${table} (${columns}) ENGINE = MergeTree ORDER BY ${order}
                SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
      })
    await create(staged.stamps, 'campaign_id String, hash String, stamp Int64', 'campaign_id')
    await create(
      staged.versions,
      'ledger String, id String, version UInt64, is_withdrawn Bool',
      '(ledger, id)',
    )
  })
  for (const shard of from) {
    await copyStamps(shard, places, staged)
    for (const ledger of comparedLedgers) await copyVersions(shard, places.slice(0, 1), staged, ledger)
  }
  return staged
}

/** Pledges are too many: only those of campaigns with other content are compared (compare-pledges.ts). */
const comparedLedgers = ledgers.filter(({ name }) => name !== 'pledge_ledger')

async function copyStamps(from: Shard, places: readonly Shard[], staged: Staged): Promise<void> {
  for (let after = ''; ; ) {
    const page = await from.tables.rows<{ id: string; hash: string; stamp: string }>({
      query: `SELECT campaign_id AS id, hex(content_hash) AS hash, toString(toUnixTimestamp64Milli(updated_at)) AS stamp
              FROM ${from.databases.model}.campaigns FINAL WHERE campaign_id > {after:String}
              ORDER BY campaign_id LIMIT ${rowsPerPage}`,
      query_params: { after },
    })
    const last = page.at(-1)
    if (!last) return
    const rows = encodeRows(
      stampColumns,
      page.map(({ id, hash, stamp }) => [id, hash, BigInt(stamp)]),
    )
    await onEach(places, ({ tables, databases }) =>
      tables.insert({ table: `${databases.model}.${staged.stamps}`, columns: stampColumns, rows }),
    )
    after = last.id
  }
}

async function copyVersions(
  from: Shard,
  places: readonly Shard[],
  staged: Staged,
  { name, key, withdrawn }: Ledger,
): Promise<void> {
  for (let after = ''; ; ) {
    const page = await from.tables.rows<{ id: string; version: string; is_withdrawn: number }>({
      query: `SELECT ${key[0]} AS id, toString(version) AS version, toUInt8(${withdrawn}) AS is_withdrawn
              FROM ${from.databases.model}.${name} FINAL WHERE ${key[0]} > {after:String}
              ORDER BY ${key[0]} LIMIT ${rowsPerPage}`,
      query_params: { after },
    })
    const last = page.at(-1)
    if (!last) return
    const rows = encodeRows(
      versionColumns,
      page.map(({ id, version, is_withdrawn }) => [name, id, BigInt(version), Number(is_withdrawn) === 1]),
    )
    await onEach(places, ({ tables, databases }) =>
      tables.insert({ table: `${databases.model}.${staged.versions}`, columns: versionColumns, rows }),
    )
    after = last.id
  }
}

/** Compares what is staged with these tables: of all places together. */
export async function compare(
  { databases }: Pick<RebuildTables, 'databases'>,
  place: Shard,
  staged: Staged,
): Promise<Compared> {
  const found: Compared = { withdrawn: 0, withdrawnIds: [], missing: 0, missingIds: [] }
  const count = async (sql: string, slices: number, slice: number) => {
    const [row] = await place.tables.rows<Compared>({
      query: sql
        .replaceAll('${staged}', place.databases.model)
        .replaceAll('${versions}', staged.versions)
        .replaceAll('${stamps}', staged.stamps)
        .replaceAll('${model}', databases.model)
        .replaceAll('${names_max}', String(namesMax)),
      query_params: { slices, slice },
    })
    if (!row) throw new Error('ClickHouse counted nothing')
    found.withdrawn += Number(row.withdrawn)
    found.missing += Number(row.missing)
    found.withdrawnIds = [...found.withdrawnIds, ...row.withdrawnIds].slice(0, namesMax)
    found.missingIds = [...found.missingIds, ...row.missingIds].slice(0, namesMax)
  }
  const slices = await slicesOf(place.tables, `${place.databases.model}.${staged.versions}`)
  for (let slice = 0; slice < slices; slice++) await count(files.campaigns, slices, slice)
  await count(files.keys, 1, 0)
  return found
}

/** The campaigns of a place, by whether they have the stamp and the content of the other tables. */
export async function countStamps({ tables, databases }: Shard, staged: Staged): Promise<StampCounts> {
  const { model } = databases
  const counts = { same: 0, different: 0 }
  const slices = await slicesOf(tables, `${model}.campaigns`)
  for (let slice = 0; slice < slices; slice++) {
    const [row] = await tables.rows<StampCounts>({
      query: `SELECT countIf(is_same) AS same, countIf(NOT is_same) AS different FROM
        (
          SELECT taken.hash = hex(row.content_hash) AND taken.stamp = toUnixTimestamp64Milli(row.updated_at) AS is_same
          FROM (SELECT campaign_id, content_hash, updated_at FROM ${model}.campaigns FINAL
                WHERE cityHash64(campaign_id) % {slices:UInt32} = {slice:UInt32}) AS row
          LEFT JOIN (SELECT * FROM ${model}.${staged.stamps}
                     WHERE cityHash64(campaign_id) % {slices:UInt32} = {slice:UInt32}) AS taken
            ON taken.campaign_id = row.campaign_id
        )`,
      query_params: { slices, slice },
    })
    counts.same += Number(row?.same ?? 0)
    counts.different += Number(row?.different ?? 0)
  }
  return counts
}

async function slicesOf(tables: Tables, table: string): Promise<number> {
  const [row] = await tables.rows<{ rows: number }>({ query: `SELECT count() AS rows FROM ${table}` })
  return Math.max(1, Math.ceil(Number(row?.rows ?? 0) / rowsPerSlice))
}

/** The staged tables of any run. */
export async function listStaged({ tables, databases }: Shard): Promise<string[]> {
  const rows = await tables.rows<{ name: string }>({
    query:
      'SELECT name FROM system.tables WHERE database = {model:String} AND startsWith(name, {prefix:String})',
    query_params: { model: databases.model, prefix },
  })
  return rows.map(({ name }) => name)
}

/** Drops these staged tables. Default: those of every run. */
export async function dropStaged({ tables, databases }: Shard, staged?: Staged): Promise<void> {
  const names = staged ? Object.values(staged) : await listStaged({ tables, databases })
  for (const name of names) {
    await tables.run({ query: `DROP TABLE IF EXISTS ${databases.model}.${name} SYNC` })
  }
}
