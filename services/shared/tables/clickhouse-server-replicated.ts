/**
 * The `replicated` setting: the tables on a cluster of several servers. Text in, text out: what it generates has been
 * checked by ClickHouse's own parser and, as far as that goes without Keeper, run in one server; not on a cluster.
 *
 * Campaigns are sharded by their id, and all that a fold reads and writes of a campaign lies on the campaign's shard, so
 * the fold's statements stay as they are and run once per shard:
 * - in the model's database a table is the shard's own part of it. A folder works there, one folder a shard, over a URL
 *   that leads to that shard's replicas alone. The shard's fold log and epochs are its own too;
 * - in `<model>_all` it is the whole table, over all shards. Projectors insert there, and the query service and the views
 *   read there: they take `distributedDatabases`;
 * - the batch log is the whole one in both, since a fold follows the batches of all projectors;
 * - keys lie on the first shard, because an account's keys have to be counted together, and few as they are they may.
 *
 * A fold has to see every ledger row of the batches it follows, and every epoch, whichever replica it reads; and a list
 * that says how current it is has to be so. Hence `replicatedSettings` for every service: a majority of a shard's replicas
 * has an insert before it is acknowledged, one insert follows the other, and a replica that lacks one answers with an
 * error that is tried again. The price: inserts into one table of one shard wait for each other, so it is shards that add
 * throughput, and a shard with fewer than a majority of its replicas takes no batches.
 *
 * What the servers' configuration needs: the cluster in `remote_servers` with `internal_replication` and a `secret`, the
 * macros `shard` and `replica`, Keeper, and clocks that agree to well within the commit horizon.
 * Another number of shards means another cluster: replay the event log into it, and then point the services there.
 */
import type { Databases } from './port.ts'

export interface Replicated {
  /** Name of the cluster in the servers' `remote_servers`: letters, digits, `_` and `-`. */
  cluster: string
}

/** Sent with every statement on a cluster. */
export const replicatedSettings = {
  insert_quorum: 'auto',
  insert_quorum_timeout: 20_000,
  // With parallel quorums, sequential consistency has no effect.
  insert_quorum_parallel: 0,
  select_sequential_consistency: 1,
  // An insert into the whole table is acknowledged by the shards, not by a queue on the way to them.
  distributed_foreground_insert: 1,
  // A shard that is away is an error, never a smaller answer.
  skip_unavailable_shards: 0,
} as const

/** Where the whole tables are, for projectors and the query service. */
export function distributedDatabases(databases: Databases): Databases {
  return { ...databases, model: nameOfWhole(databases.model) }
}

// Which shard a row of a table belongs to; `own`: the shard that wrote it; `all`: every server has every row.
const placements: Readonly<Record<string, string>> = {
  campaign_ledger: 'cityHash64(campaign_id)',
  pledge_ledger: 'cityHash64(campaign_id)',
  campaigns: 'cityHash64(campaign_id)',
  api_key_ledger: 'cityHash64(api_key) % 1',
  api_keys: 'cityHash64(api_key) % 1',
  batch_log: 'cityHash64(projector)',
  fold_log: 'own',
  fold_epochs: 'own',
  // Few rows, that all have to be seen together.
  identity: 'cityHash64(setting) % 1',
  rebuild_log: 'cityHash64(rebuild_id) % 1',
  migrations: 'all',
}

const model = '${model}'

// What makes a view, and what says as whom it reads.
const viewStatement =
  /^(?:CREATE OR REPLACE VIEW|ALTER TABLE(?= \S+ MODIFY SQL SECURITY )) \$\{(?:views|model)\}\.\w+/

/**
 * The statements that do on a cluster what this one does on one server, `${model}` and `${views}` still in them.
 * Throws on a statement or a table whose form on a cluster nobody has decided yet.
 */
export function replicatedForms(statement: string, { cluster }: Replicated): string[] {
  if (!/^[\w-]+$/.test(cluster)) throw new TypeError(`${JSON.stringify(cluster)} is no name of a cluster`)
  const onCluster = `ON CLUSTER '${cluster}'`
  const created = /^CREATE (?:DATABASE|TABLE|USER|ROLE) IF NOT EXISTS (\S+)/.exec(statement)
  const table = /^CREATE TABLE IF NOT EXISTS \$\{model\}\.(\w+)/.exec(statement)?.[1]
  if (table !== undefined) return tableForms(statement, table, cluster)
  if (created) return alsoForWhole(statement.replace(created[0], `${created[0]} ${onCluster}`))
  if (/^GRANT SELECT ON /.test(statement))
    return alsoForWhole(statement.replace(/^GRANT/, `GRANT ${onCluster}`))
  const view = viewStatement.exec(statement)?.[0]
  if (view !== undefined) return [overWhole(statement.replace(view, `${view} ${onCluster}`))]
  throw new Error(`no form on a cluster is known for: ${statement.slice(0, 100)}`)
}

/** The shard's part of a table, and the whole table over all shards. */
function tableForms(statement: string, table: string, cluster: string): string[] {
  const placement = placements[table]
  if (placement === undefined) throw new Error(`it is not decided to which shard a row of ${table} belongs`)
  const isWholeInModel = table === 'batch_log'
  const part = isWholeInModel ? `${table}_shard` : table
  const onCluster = `ON CLUSTER '${cluster}'`
  const partStatement = statement
    .replace(`${model}.${table}`, `${model}.${part} ${onCluster}`)
    .replace(/^ENGINE = (\w*MergeTree)(?:\((.*)\))?$/m, (_, engine: string, parameters?: string) => {
      // Names, not macros, stand in the path: with macros a table could not be renamed.
      const group = placement === 'all' ? 'all' : '{shard}'
      const replica = placement === 'all' ? '{shard}-{replica}' : '{replica}'
      const path = `'/clickhouse/tables/${group}/${model}/${part}', '${replica}'`
      return `ENGINE = Replicated${engine}(${[path, parameters].filter(Boolean).join(', ')})`
    })
  if (placement === 'own' || placement === 'all') return [partStatement]
  const wholes = isWholeInModel ? [model, nameOfWhole(model)] : [nameOfWhole(model)]
  return [
    partStatement,
    ...wholes.map(
      database =>
        `CREATE TABLE IF NOT EXISTS ${database}.${table} ${onCluster} AS ${model}.${part}
ENGINE = Distributed('${cluster}', '${model}', '${part}', ${placement})`,
    ),
  ]
}

/** What is made or granted for the model's database, once more for that of the whole tables. */
function alsoForWhole(statement: string): string[] {
  const whole = statement.replaceAll(model, nameOfWhole(model))
  return whole === statement ? [statement] : [statement, whole]
}

/** A view over the whole tables. A subquery is answered once, for all shards, and not by each for itself. */
function overWhole(statement: string): string {
  return statement.replaceAll(model, nameOfWhole(model)).replaceAll(/\bIN \(SELECT\b/g, 'GLOBAL IN (SELECT')
}

function nameOfWhole(database: string): string {
  return `${database}_all`
}
