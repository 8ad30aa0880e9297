/**
 * Purges what the base database has of deleted campaigns and keys. The history of a campaign that is only hidden stays: the sums need it.
 * The usage of a revoked key stays: its account still sees it.
 */

import { counted } from '../runtime/progress.ts'
import { idChunks } from '../tables/clickhouse/statements.ts'
import { findDeletedDays, removeRows } from '../tables/deleted-rows.ts'
import { qualified } from '../tables/generation-log.ts'
import type { Shard } from '../tables/port.ts'
import { oldPartsMs } from '../tables/superseded.ts'
import { leftOver, type PurgedCopy, purged } from './report.ts'
import { deleteRows, type TablesPurge } from './tables.ts'

export async function purgeDeleted(shard: Shard, purge: TablesPurge): Promise<PurgedCopy[]> {
  const { tables, databases } = shard
  const { base } = databases
  const campaigns = await findDeletedDays(tables, databases)
  const days = await purgeOne('campaign_days', 'deleted campaign', campaigns)
  // A deleted key leaves a tombstone, which has no account.
  const rows = await tables.rows<{ key: string }>({
    query: `SELECT DISTINCT api_key AS key FROM ${base}.api_key_usage
            WHERE api_key IN (SELECT api_key FROM ${base}.api_key_ledger FINAL WHERE account_id = '')`,
  })
  const keys = rows.map(({ key }) => key)
  const requests = await purgeOne('api_key_requests', 'deleted key', keys)
  // The keys are found by their counts, so these go last.
  return [days, requests, await purgeOne('api_key_usage', 'deleted key', keys)]

  async function purgeOne(
    table: Parameters<typeof removeRows>[1],
    what: string,
    ids: readonly string[],
  ): Promise<PurgedCopy> {
    const copy = `table ${table}`
    if (ids.length === 0) return purged(copy, `no ${what}`)
    const done = `the rows of ${counted(ids.length, what)}`
    if (purge.isDry) return purged(copy, `removes ${done}`)
    const remove = () => removeRows(shard, table, ids)
    return deleteRows(shard, { table, remove }, purge, purged(copy, `removed ${done}`))
  }
}

/* Purges the rejects of deleted entities, or all rejects. For the other rejects, nothing shows which person the bytes are about. */

const table = 'rejects'
// Of one statement. A key of an entity has at most 513 characters, and the parameters of a statement 128 KiB.
const keysMax = 50
// How long ClickHouse may wait before it applies a TTL, four hours by default, and keep the files after that.
const expiryMsMax = 4 * 3_600_000 + oldPartsMs
const notDeleted = 'whose entity is not deleted: see rejects list; --rejects removes them'

export async function purgeRejects(
  shard: Shard,
  purge: TablesPurge,
  wholeBase: string,
): Promise<PurgedCopy[]> {
  const { base } = shard.databases
  const copy = `table ${table}`
  const { isDry, removesRejects } = purge
  // How many there are, and when the last of them expires, Unix ms.
  const [stored] = await shard.tables.rows<{ rejects: number; expiresAt: number }>({
    query: `SELECT count() AS rejects, max(toUnixTimestamp64Milli(kept_until)) AS expiresAt FROM ${base}.${table} FINAL`,
  })
  const { rejects: all, expiresAt } = stored ?? { rejects: 0, expiresAt: 0 }
  const keys = removesRejects ? [] : await keysOfRejects(shard, wholeBase)
  const removed = removesRejects ? all : keys.reduce((sum, { rejects }) => sum + rejects, 0)
  const done = `${isDry ? 'removes' : 'removed'} ${counted(removed, 'row')}`
  const left = all - removed
  const report =
    left === 0 ? purged(copy, done) : leftOver(copy, done, `${left} ${notDeleted}`, expiresAt + expiryMsMax)
  if (isDry || removed === 0) return [report]
  const remove = async () => {
    if (removesRejects) return deleteWhere('true', {})
    const condition = "concat(topic, '/', ifNull(key, '')) IN {names:Array(String)}"
    const places = keys.map(({ topic, key }) => `${topic}/${key}`)
    for (const names of idChunks(places, keysMax)) await deleteWhere(condition, { names })
  }
  return [await deleteRows(shard, { table, remove }, purge, report)]

  function deleteWhere(condition: string, query_params: Record<string, unknown>): Promise<void> {
    const query = `ALTER TABLE ${base}.${table} DELETE WHERE ${condition} SETTINGS mutations_sync = 2`
    return shard.tables.run({ query, query_params })
  }
}

/**
 * The keys of rejects whose entities are deleted. Nothing ranks after a tombstone, so most ledgers need no FINAL. A deleted account may be
 * signed up again. On a cluster the portal's ledgers are on the first shard, but the rejects of its topics are on any.
 */
function keysOfRejects(
  { tables, databases }: Shard,
  wholeBase: string,
): Promise<{ topic: string; key: string; rejects: number }[]> {
  const campaignOf = `splitByChar('/', assumeNotNull(key))[1]`
  const deleted = (ledger: string) => `${qualified(ledger, databases)} WHERE version = 18446744073709551615`
  const accounts = `SELECT account_id FROM ${wholeBase}.account_ledger FINAL WHERE email = ''`
  return tables.rows({
    query: `SELECT topic, assumeNotNull(key) AS key, count() AS rejects FROM ${databases.base}.${table} FINAL
      WHERE key IS NOT NULL AND multiIf(
        topic = 'campaigns', key IN (SELECT campaign_id FROM ${deleted('campaign_ledger')}),
        topic = 'api-keys', key IN (SELECT api_key FROM ${deleted('api_key_ledger')}),
        topic = 'accounts', key IN (${accounts}),
        topic = 'notices', key IN (SELECT notice_id FROM ${wholeBase}.notice_ledger FINAL
                                   WHERE rule = '' OR account_id GLOBAL IN (${accounts})),
        ${campaignOf} IN (SELECT campaign_id FROM ${deleted('campaign_ledger')})
        OR key IN (SELECT concat(campaign_id, '/', pledge_id) FROM ${deleted('pledge_ledger')}
                   AND campaign_id IN (SELECT ${campaignOf} FROM ${databases.base}.${table} WHERE topic = 'pledges')))
      GROUP BY topic, key`,
  })
}
