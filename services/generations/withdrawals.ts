/**
 * What the live ledgers have and the new ones lack. The verification asks for all of it (`readMissing`). Withdrawals are carried over. They are
 * rows of a ledger without content, because the entity was deleted, hidden or cancelled. The history of a rebuild may not have them: the log
 * has compacted the tombstone away, or older events were appended again.
 *
 * Promises:
 * - What is withdrawn in the live tables is not shown by the generation that is promoted, whatever history was read. Versions
 *   decide, as in every ledger: only a later version shows a hidden campaign again, and nothing ranks after a tombstone.
 * - The new ledgers have the tombstones too, so that a later rebuild or a rollback does not bring the entity back either.
 * How it fails: it throws what the tables throw. It can be repeated at any time.
 */
import { ledgerColumns } from '../../contracts/tables/campaign-columns.ts'
import { lastIn, runsMax } from '../projector/fold/fold-progress.ts'
import { pledgeColumns } from '../projector/ingest/ledger-rows.ts'
import { idChunks } from '../tables/clickhouse/statements.ts'
import type { Databases, Tables } from '../tables/port.ts'
import { fillIn, nameDatabases, readSql } from '../tables/sql-text.ts'

const announce = readSql('announce-withdrawals', import.meta.url)

/**
 * The function carries what was withdrawn since its last call; the first call carries everything. Its fold has to follow. `run`: names
 * this run of the rebuild on this shard; unique.
 */
export function createWithdrawals(tables: Tables, { live, rebuilt }: Sides, run: string) {
  let carried: Look | undefined
  let calls = 0

  async function carryOf(scope: Scope): Promise<void> {
    const { condition } = scope
    const parameters = { ...scope.parameters, projector: `${run}-withdrawals-${++calls}` }
    await tables.run({ query: announcement(condition), query_params: parameters })
    const [announced] = await tables.rows({
      query: `SELECT 1 FROM ${rebuilt.ledger}.batch_log WHERE projector = {projector:String} LIMIT 1`,
      query_params: parameters,
    })
    // Usually there is nothing to carry.
    if (!announced) return
    for (const query of copies(condition)) await tables.run({ query, query_params: parameters })
  }

  return async (signal: AbortSignal): Promise<void> => {
    // What a projector inserts later than this, it appends to the batch log later than this.
    const look = await lookAt(tables, live)
    const scopes = carried ? [changedSince(live, carried)] : await rangesOf(tables, live)
    for (const scope of scopes) {
      signal.throwIfAborted()
      await carryOf(scope)
    }
    carried = look
  }

  function announcement(condition: string): string {
    const campaigns = ledgers.map(
      one => `SELECT campaign_id FROM (${newerQuery(one, { live, rebuilt }, condition, one.withdrawn)})`,
    )
    return fillIn(nameDatabases(announce, rebuilt), {
      live: live.ledger,
      scope: condition,
      withdrawn_campaigns: campaigns.join(' UNION ALL '),
    })
  }

  /**
   * The live projectors go on. A withdrawal that is newer than the announcement waits for the next one: if its campaign were not folded
   * again, the read table would not match the ledger.
   */
  function copies(condition: string): string[] {
    const announced = `${condition} AND campaign_id IN
        (SELECT arrayJoin(campaign_ids) FROM ${rebuilt.ledger}.batch_log WHERE projector = {projector:String})`
    return ledgers.map(ledger => {
      const { name, key, columns } = ledger
      return `INSERT INTO ${rebuilt.ledger}.${name} (${columns}) SETTINGS async_insert = 0
        SELECT ${columns} FROM ${live.ledger}.${name} FINAL
        WHERE ${ledger.withdrawn} AND ${announced} AND (${key}) IN
          (SELECT ${key} FROM (${newerQuery(ledger, { live, rebuilt }, announced, ledger.withdrawn)}))`
    })
  }
}

/* The ledgers as a rebuild compares them: what the live ledger has and the new one does not. */

const namesOf = (columns: readonly { name: string }[]) => columns.map(({ name }) => name).join(', ')

/** `withdrawn`: SQL; the row has no content to show, because the entity was deleted, hidden or cancelled. */
const ledgers = [
  {
    name: 'campaign_ledger',
    key: 'campaign_id',
    columns: namesOf(ledgerColumns),
    withdrawn: 'NOT is_public',
  },
  {
    name: 'pledge_ledger',
    key: 'campaign_id, pledge_id',
    columns: namesOf(pledgeColumns),
    withdrawn: 'NOT counts',
  },
] as const

/** The current generation, and the one that is built. */
export interface Sides {
  live: Databases
  rebuilt: Databases
}

const newer = readSql('newer', import.meta.url)

/** Selects the entities of which the live ledger has a newer version. `scope`: SQL. `rows`: SQL; only these rows of the live ledger. */
function newerQuery(
  { name, key, withdrawn }: (typeof ledgers)[number],
  { live, rebuilt }: Sides,
  scope: string,
  rows = '1',
): string {
  const parts = { ledger: name, key, withdrawn, rows, scope }
  return fillIn(newer, { live: live.ledger, rebuilt: rebuilt.ledger, ...parts })
}

/** An entity of the live ledger, of which the rebuilt ledger has an older version or nothing. */
export interface Missing {
  campaign: string
  /** Which entity of the campaign: itself, or one of its pledges. */
  entity: string
  isPledge: boolean
  /** Versions as text: they have 64 bits. */
  liveVersion: string
  /** -1: the entity is unknown. */
  rebuiltVersion: string
  /** Whether it is deleted, hidden or cancelled in the live tables. */
  isWithdrawn: boolean
}

type Compared = Sides & { tables: Tables }

const missingMax = 10_000
const idsPerStatement = 1_000

/** Returns at most 10,000 of each ledger, of the campaigns in scope. */
export async function readMissing(shard: Compared, { condition, parameters }: Scope): Promise<Missing[]> {
  const missing = ledgers.map(ledger => {
    const query = `SELECT campaign_id AS campaign, toJSONString([${ledger.key}]) AS entity, toBool(is_withdrawn) AS isWithdrawn,
        ${ledger.name === 'pledge_ledger'} AS isPledge, toString(live_version) AS liveVersion,
        if(is_known, toString(rebuilt_version), '-1') AS rebuiltVersion
      FROM (${newerQuery(ledger, shard, condition)}) ORDER BY ${ledger.key} LIMIT ${missingMax}`
    return shard.tables.rows<Missing>({ query, query_params: parameters })
  })
  return (await Promise.all(missing)).flat()
}

/** What is still missing after the new generation has caught up, compared with what the live tables had before. */
export async function stillMissing(shard: Compared, before: readonly Missing[]): Promise<Missing[]> {
  const now = new Map<string, Missing>()
  for (const ids of idChunks([...new Set(before.map(({ campaign }) => campaign))], idsPerStatement)) {
    const scope = { condition: 'campaign_id IN {ids:Array(String)}', parameters: { ids } }
    for (const missing of await readMissing(shard, scope)) now.set(missing.entity, missing)
  }
  return before.filter(({ entity, liveVersion }) => {
    const found = now.get(entity)
    return found !== undefined && BigInt(found.rebuiltVersion) < BigInt(liveVersion)
  })
}

/* Ranges of the ledgers. The pledges of a platform do not fit into the memory of one statement. */

const campaignsPerRange = 20_000

/** A set of campaigns: a condition (SQL) for a column `campaign_id`. */
export interface Scope {
  condition: string
  parameters: Record<string, unknown>
}

/** Ranges of about so many campaigns each. Together they cover all ids. Each statement reads only its part of the tables. */
export async function rangesOf(
  tables: Tables,
  { ledger }: Databases,
  campaigns = campaignsPerRange,
): Promise<Scope[]> {
  const [row] = await tables.rows<{ bounds: string[] }>({
    query: `SELECT arrayFilter((id, place) -> place % ${campaigns} = 0, ids, arrayEnumerate(ids)) AS bounds
            FROM (SELECT arraySort(groupUniqArray(campaign_id)) AS ids FROM ${ledger}.campaign_ledger)`,
  })
  const bounds = row?.bounds ?? []
  return [...bounds, undefined].map((up_to, place) => {
    const after = bounds[place - 1]
    const ends = [
      ...(after === undefined ? [] : ['campaign_id > {after:String}']),
      ...(up_to === undefined ? [] : ['campaign_id <= {up_to:String}']),
    ]
    return { condition: ends.join(' AND ') || '1', parameters: { after: after ?? '', up_to: up_to ?? '' } }
  })
}

/* What is new in a batch log since a look at it. */

export interface Look {
  /** ClickHouse's clock, Unix ms. */
  at: number
  /** The runs of projectors with a late batch, and the last batch of each. */
  runs: string[]
  lasts: number[]
}

// ClickHouse's clock may step back by less than this between two looks.
const marginMs = 3_600_000

export async function lookAt(tables: Pick<Tables, 'rows'>, { ledger }: Databases): Promise<Look> {
  const [look] = await tables.rows<Look>({
    query: `SELECT toUnixTimestamp64Milli(now64(3, 'UTC')) AS at, groupArray(run) AS runs, groupArray(last) AS lasts
            FROM
            (
              SELECT toString(projector) AS run, max(sequence) AS last FROM ${ledger}.batch_log
              WHERE appended_at >= now64(3, 'UTC') - toIntervalMillisecond(${marginMs})
              GROUP BY run ORDER BY max(appended_at) DESC LIMIT ${runsMax}
            )`,
  })
  if (look === undefined) throw new Error('ClickHouse returned no time')
  return look
}

/** The campaigns of the batches that a look did not find. Those of a run that it left out count as new. */
export function changedSince({ ledger }: Databases, { at, runs, lasts }: Look): Scope {
  return {
    condition: `campaign_id IN (SELECT arrayJoin(campaign_ids) FROM ${ledger}.batch_log AS batch
        WHERE appended_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
          AND sequence > ${lastIn('{seen_runs:Array(String)}', '{seen_lasts:Array(UInt64)}')})`,
    // No run has an empty name. ClickHouse refuses to look into no runs.
    parameters: { since: at - marginMs, seen_runs: ['', ...runs], seen_lasts: [0, ...lasts] },
  }
}
