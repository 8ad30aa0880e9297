/**
 * Takes over the stamps (`updated_at`) of other tables that are filled from the same log: of a cluster with another number of
 * shards, beside which this one was filled by its own projectors. Then the query processes can be pointed to these tables, and
 * no poller fetches the world again.
 *
 * Promises, if nobody folds the other tables and no query process reads these yet:
 * - A campaign with the same content gets the stamp that it has there. A poller that goes on with a watermark of the other tables
 *   gets exactly what it would have got there.
 * - A campaign with other content, or that only these tables have, gets a stamp that no poller of the other tables has passed: the
 *   stamp floor is raised to theirs first. So the poller fetches it.
 * - It may be killed at any point, and repeated at any time. In the other direction it is the way back.
 * How it fails: it throws `StampsRefused` with what has to be done first, or what ClickHouse throws.
 */
import { contentColumns } from '../../contracts/tables/campaign-columns.ts'
import { foldWorkerSettings } from '../projector/fold/fold-settings.ts'
import { fill } from '../projector/fold/fold-statements.ts'
import type { Config } from '../shared/config.ts'
import type { Sleep } from '../shared/sleep.ts'
import type { Databases, Shard, Tables } from '../shared/tables/port.ts'
import { readSql } from '../shared/tables/read-sql.ts'
import { encodeRows } from '../shared/tables/row-binary.ts'
import { onEach, type RebuildTables } from './cluster.ts'
import { FoldPauseLost } from './held-fold.ts'
import { isWorking, latestRebuild } from './rebuild-log.ts'
import { stampInPieces } from './stamp-changed.ts'

export interface TakeStampsDependencies extends RebuildTables {
  /** The other tables; on a cluster those of the whole. */
  from: Shard
  config: Config
  /** Names this run; unique. */
  run: string
  monotonicMs: () => number
  sleep: Sleep
  random: () => number
}

export interface TakenStamps {
  /** Public campaigns of these tables with the content and the stamp of the other ones. */
  same: number
  /** Those that pollers will fetch: with other content, or not in the other tables. */
  different: number
}

/** The stamps cannot be taken over in the present state. The message says what has to be done. */
export class StampsRefused extends Error {
  override name = 'StampsRefused'
}

const attemptsMax = 5
const rowsPerPage = 20_000
// The leader of a fold writes the floor at least four times in a commit horizon.
const quietHorizons = 2

const files = {
  take: readSql('take-stamps', import.meta.url),
  raise: readSql('raise-stamp-floor', import.meta.url),
}

const columns = [
  { name: 'campaign_id', type: 'String' },
  { name: 'hash', type: 'String' },
  { name: 'stamp', type: 'Int64' },
]

export async function takeStamps(dependencies: TakeStampsDependencies): Promise<TakenStamps> {
  const { tables, databases, cluster, from } = dependencies
  const latest = await latestRebuild(tables, databases)
  if (latest && isWorking(latest)) throw new StampsRefused('a rebuild of these tables is not finished')
  const places: readonly Shard[] = cluster?.shards ?? [{ tables, databases }]
  const floor = await quietFloor(dependencies)
  await copyStamps(from, places)
  for (const place of places) await stampPlace(dependencies, place, floor.reached)
  const counts = await onEach(places, readCounts)
  if ((await readFloor(from)).ofShards !== floor.ofShards) throw stillFolded()
  await onEach(places, dropStaged)
  return {
    same: counts.reduce((sum, { same }) => sum + Number(same), 0),
    different: counts.reduce((sum, { different }) => sum + Number(different), 0),
  }
}

interface StampFloor {
  /** The highest, Unix ms. */
  reached: string
  /** That of each shard, as text. */
  ofShards: string
}

/** The stamp floor of the other tables. Throws if a fold worker still writes it. */
async function quietFloor({ from, config, sleep }: TakeStampsDependencies): Promise<StampFloor> {
  const before = await readFloor(from)
  await sleep(quietHorizons * config.PLEDGEVIEW_COMMIT_HORIZON_MS)
  if ((await readFloor(from)).ofShards !== before.ofShards) throw stillFolded()
  return before
}

async function readFloor({ tables, databases }: Shard): Promise<StampFloor> {
  const [row] = await tables.rows<StampFloor>({
    query: `SELECT toString(max(at)) AS reached, toString(arraySort(groupArray((shard, at)))) AS ofShards
            FROM (SELECT shard, toUnixTimestamp64Milli(max(reached)) AS at FROM ${databases.model}.stamp_floor GROUP BY shard)`,
  })
  if (!row) throw new Error('ClickHouse did not tell the stamp floor')
  return row
}

function stillFolded(): StampsRefused {
  return new StampsRefused('the other tables are still folded: stop their projectors, and run it again')
}

/** Every place gets all of them, and uses those of its own campaigns. */
async function copyStamps(from: Shard, places: readonly Shard[]): Promise<void> {
  await onEach(places, async place => {
    await dropStaged(place)
    const { model } = stagedOf(place.databases)
    await place.tables.run({ query: `CREATE DATABASE ${model}` })
    await place.tables.run({
      query: `CREATE TABLE ${model}.stamps (campaign_id String, hash String, stamp Int64) ENGINE = MergeTree ORDER BY campaign_id`,
    })
  })
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
      columns,
      page.map(({ id, hash, stamp }) => [id, hash, BigInt(stamp)]),
    )
    await onEach(places, ({ tables, databases }) =>
      tables.insert({ table: `${stagedOf(databases).model}.stamps`, columns, rows }),
    )
    after = last.id
  }
}

async function stampPlace(
  { config, run, monotonicMs, sleep, random }: TakeStampsDependencies,
  { tables, databases }: Shard,
  reached: string,
): Promise<void> {
  const settings = foldWorkerSettings(config)
  const held = { tables, tablesWithoutRetry: tables, databases, run, settings, monotonicMs, sleep, random }
  const columnsOfRow = contentColumns.map(name => `row.${name}`).join(', ')
  const taken = stagedOf(databases).model
  for (let attempt = 1; ; attempt++) {
    try {
      return await stampInPieces(
        { ...held, epochFloor: async () => 0n },
        step => ({
          query: fill(files.take.replaceAll('${row_columns}', columnsOfRow), databases, step).replaceAll(
            '${taken}',
            taken,
          ),
          query_params: { reached },
        }),
        step => ({ query: fill(files.raise, databases, step), query_params: { reached } }),
      )
    } catch (error) {
      if (!(error instanceof FoldPauseLost) || attempt === attemptsMax) throw error
    }
  }
}

async function readCounts({ tables, databases }: Shard): Promise<{ same: number; different: number }> {
  const [row] = await tables.rows<{ same: number; different: number }>({
    query: `SELECT countIf(is_same) AS same, countIf(NOT is_same) AS different FROM
      (
        SELECT taken.hash = hex(row.content_hash) AND taken.stamp = toUnixTimestamp64Milli(row.updated_at) AS is_same
        FROM (SELECT campaign_id, content_hash, updated_at FROM ${databases.model}.campaigns FINAL) AS row
        LEFT JOIN ${stagedOf(databases).model}.stamps AS taken ON taken.campaign_id = row.campaign_id
      )`,
  })
  return row ?? { same: 0, different: 0 }
}

function stagedOf({ model }: Databases): { model: string } {
  return { model: `${model}_stamps` }
}

async function dropStaged({ tables, databases }: { tables: Tables; databases: Databases }): Promise<void> {
  await tables.run({ query: `DROP DATABASE IF EXISTS ${stagedOf(databases).model} SYNC` })
}
