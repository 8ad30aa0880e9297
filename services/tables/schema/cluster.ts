/**
 * The tables on a cluster of several servers, its shards. Text in, text out. `migrate` and rebuilds send each statement to every
 * shard by its URL (shards.ts).
 *
 * Campaigns are sharded by id. Everything that a fold reads and writes of a campaign is on the campaign's shard. So
 * the fold's statements are unchanged and run once per shard:
 * - in the model's database a table is the shard's own part. One fold worker per shard works there, over the shard's URL. The
 *   fold's progress and the epochs belong to the shard too;
 * - in `<model>_all` a table is the whole table, over all shards. Projectors insert there, and the query service reads
 *   there: they use `distributedDatabases`. The views are in two steps as well (cluster-views.ts);
 * - the batch log is the whole table in both, because a fold follows the batches of all projectors;
 * - keys are on the first shard, because the keys of an account have to be counted together. They are few.
 *
 * A shard is one server. The servers' configuration needs the cluster in `remote_servers` with a `secret`, and the macro `shard`.
 * To change the number of shards, set up another cluster: replay the event log into it, and then point the services
 * there. A rebuild in place works on each shard as on one server (services/generations/context.ts).
 */

import type { Databases } from '../port.ts'
import { partsOf, wholeOf } from './cluster-views.ts'

/** Sent with every statement on a cluster. */
export const clusterSettings = {
  // The shards acknowledge an insert into the whole table, not a queue on the way to them.
  distributed_foreground_insert: 1,
  // If a shard is away, a query fails. It never returns a smaller answer.
  skip_unavailable_shards: 0,
} as const

/** The databases of the whole tables, for projectors and the query service. */
export function distributedDatabases({ views, ...own }: Databases): Databases {
  const { base, ledger, read } = own
  return { views, base: wholeOf(base), ledger: wholeOf(ledger), read: wholeOf(read) }
}

// The shard of a table's row. `own`: the shard that wrote it.
const placements: Readonly<Record<string, string>> = {
  campaign_ledger: 'cityHash64(campaign_id)',
  pledge_ledger: 'cityHash64(campaign_id)',
  campaigns: 'cityHash64(campaign_id)',
  api_key_ledger: 'cityHash64(api_key) % 1',
  api_keys: 'cityHash64(api_key) % 1',
  // With the keys, because a deletion has to find those of its account.
  account_ledger: 'cityHash64(account_id) % 1',
  notice_ledger: 'cityHash64(notice_id) % 1',
  // With the keys that they are about, so that a purge can compare the two.
  api_key_usage: 'cityHash64(api_key) % 1',
  api_key_requests: 'cityHash64(api_key) % 1',
  // With the entities of their keys, so that a purge can compare the two. All rows of one place are on one shard.
  rejects: "if(topic = 'api-keys', 0, cityHash64(splitByChar('/', ifNull(key, ''))[1]))",
  batch_log: 'cityHash64(projector)',
  // Each shard says what it has: one may be restored alone.
  positions: 'own',
  fold_progress: 'own',
  fold_epochs: 'own',
  // Its own shard's fold worker writes a row; the watermark needs the rows of all shards.
  watermarks: 'cityHash64(shard)',
  campaign_days: 'cityHash64(campaign_id)',
  // As the watermark: each shard writes its own history.
  history_marks: 'cityHash64(shard)',
  quarantine: 'own',
  // Few rows, and all have to be seen together.
  identity: 'cityHash64(setting) % 1',
  // A promotion has its conditions in one table of one server.
  generation_log: 'cityHash64(attempt) % 1',
  projector_log: 'cityHash64(projector) % 1',
  projector_stops: 'cityHash64(projector) % 1',
  freshness: 'cityHash64(minute) % 1',
  // Each shard says which files it has run.
  migrations: 'own',
}

const views = '${views}'

/**
 * The statements that do on each shard of a cluster what this one does on one server. They still contain the placeholders of the
 * databases. None for a view: clusterViews creates them all. Throws if the form of the statement or table on a cluster is not defined.
 */
export function clusterForms(statement: string, cluster: string): string[] {
  if (!/^[\w-]+$/.test(cluster))
    throw new TypeError(`${JSON.stringify(cluster)} is not the name of a cluster`)
  const table = ownTable.exec(statement)
  if (table) return tableForms(statement, table, cluster)
  if (/^CREATE (?:DATABASE|USER|ROLE) IF NOT EXISTS /.test(statement)) return alsoForWhole(statement)
  if (statement.startsWith('CREATE OR REPLACE VIEW ')) return []
  const extended = /^ALTER TABLE \$\{\w+\}\.(\w+)\s+(?=ADD COLUMN IF NOT EXISTS )/.exec(statement)
  if (extended) return addedColumns(statement, extended)
  // Each shard sends the row to the shard of its key, where equal keys are merged into one.
  const filled = /^INSERT INTO (\$\{\w+\})(?=\.)/.exec(statement)
  if (filled?.[1]) return [statement.replace(filled[0], `INSERT INTO ${wholeOf(filled[1])}`)]
  // Only the shard's part has a codec and computed columns, and only a user has settings.
  if (
    /^ALTER TABLE \$\{\w+\}\.\w+ MODIFY COLUMN \w+ (?:CODEC\(|String MATERIALIZED )|^ALTER USER \w+ SETTINGS\s/.test(
      statement,
    )
  )
    return [statement]
  if (/^GRANT (?:SELECT|INSERT) ON /.test(statement)) return alsoForWhole(statement)
  throw new Error(`the form on a cluster is not defined for: ${statement.slice(0, 100)}`)
}

const ownTable = /^CREATE TABLE IF NOT EXISTS (\$\{\w+\})\.(\w+)/

/** The shard's part of a table, and the whole table over all shards. */
function tableForms(
  statement: string,
  [, database = '', table = '']: RegExpExecArray,
  cluster: string,
): string[] {
  const placement = placements[table]
  if (placement === undefined) throw new Error(`no shard is defined for the rows of ${table}`)
  const isWholeInOwn = table === 'batch_log'
  const part = isWholeInOwn ? `${table}_shard` : table
  const partStatement = statement.replace(`${database}.${table}`, `${database}.${part}`)
  if (placement === 'own') return [partStatement]
  const wholes = isWholeInOwn ? [database, wholeOf(database)] : [wholeOf(database)]
  return [
    partStatement,
    ...wholes.map(
      whole =>
        `CREATE TABLE IF NOT EXISTS ${whole}.${table} AS ${database}.${part}
ENGINE = Distributed('${cluster}', '${database}', '${part}', ${placement})`,
    ),
  ]
}

/** New columns: of the shard's part first, because the whole table then asks for them. */
function addedColumns(statement: string, [, table = '']: RegExpExecArray): string[] {
  const placement = placements[table]
  if (placement === undefined) throw new Error(`no shard is defined for the rows of ${table}`)
  if (table === 'batch_log') throw new Error(`the form on a cluster is not defined for columns of ${table}`)
  return placement === 'own' ? [statement] : alsoForWhole(statement)
}

/** The statement for the database that it names, and the same for the one of the whole tables or of the shards' views. */
function alsoForWhole(statement: string): string[] {
  const database = /\$\{\w+\}(?:_\w*\*)?/.exec(statement)?.[0]
  if (database === undefined) return [statement]
  // A right to one view of the data teams is one to the shards' views of that name, and so is their database. The wildcard of the
  // generations has the wholes, too.
  if (database.endsWith('_*')) return [statement]
  const other = database === views ? partsOf(views) : wholeOf(database)
  return [statement, statement.replaceAll(database, other)]
}
