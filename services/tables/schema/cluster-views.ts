/**
 * The views on a cluster. Text in, text out.
 *
 * A view reads as its definer on the server that was asked. But ClickHouse sends the name of the person who asks to the
 * other shards, so a view over the tables of all shards is refused there. So the views are in two steps:
 * - every shard has every view, over its own tables only: those of data teams in `<views>_parts`, private ones in the
 *   model's database. They read as the definer;
 * - `<views>` and `<model>_all` have the whole. If that is all rows of all shards, it is a Distributed table over the
 *   shards' views. If the shards' rows have to be summed, it is a view that sums them (contracts/tables/cluster). Both read
 *   as the person who asks, who may read the shards' views too.
 *
 * What is counted over all shards but may not be read goes another way: the servers ask each other for it as a user of their own,
 * over a second cluster of the same shards, and only the count can be read (contracts/tables/cluster/0003-people.sql).
 *
 * Filters and sums run on the shards. If a shard is away, a query fails.
 *
 * Every `migrate` creates all of them again, each in one step: they contain no rows, and a view of an earlier version is
 * replaced.
 */

/** The database of the shards' views, and of the tables that join them. */
export function partsOf(views: string): string {
  return `${views}_parts`
}

/** The database of the whole tables. */
export function wholeOf(database: string): string {
  return `${database}_all`
}

/** The cluster of the same shards over which the servers ask each other as a user of their own. */
export function countsClusterOf(cluster: string): string {
  return `${cluster}_counts`
}

export interface ViewStatements {
  /** All statements of the migrations. Those that create no view are left out. */
  migrations: readonly string[]
  /** Of contracts/tables/cluster: what each shard adds, the views that sum, and those that count people. */
  parts: readonly string[]
  wholes: readonly string[]
  people: readonly string[]
}

interface View {
  /** With the placeholder of its database, as `${views}.campaigns`. */
  name: string
  /** The list of columns with their comments, if it has one. */
  columns: string
  select: string
  /** The comment of the view, if it has one. */
  comment: string
}

/**
 * What joins the rows that the shards' views have. `rows`: a table of the same name in the database of the whole. `joined`: a
 * table that is called all_..., beside the shards' views, for a view of the same name that sums. `counted`: as `rows`, but over
 * the cluster that counts. `own`: nothing.
 */
const joins: Readonly<Record<string, 'rows' | 'joined' | 'counted' | 'own'>> = {
  campaigns: 'rows',
  rewards: 'rows',
  campaign_days: 'rows',
  categories: 'joined',
  about: 'joined',
  platform_totals: 'own',
  category_funding_days: 'own',
  funding_days: 'own',
  campaign_changes: 'rows',
  campaign_pages: 'rows',
  removals: 'rows',
  revoked_keys: 'rows',
  watermark: 'own',
  campaign_by_slug: 'own',
  history_days: 'own',
  history_end: 'own',
  history_gains: 'own',
  history_moves: 'own',
  // Those that contracts/tables/cluster adds.
  platform_sums: 'joined',
  history_totals: 'joined',
  history_sums: 'joined',
  history_today: 'joined',
  campaign_rows: 'rows',
  campaign_slugs: 'own',
  shard_watermark: 'rows',
  shard_backers: 'counted',
  shard_creators: 'counted',
}

const views = '${views}'

// The shards sum their days first. The whole goes on to the same day for all shards.
const daysOfWhole = ['category_funding_days', 'funding_days']
const readsOfWhole = [
  ['SELECT today FROM ${base}.history_end', `SELECT max(today) FROM ${partsOf(views)}.all_history_today`],
  ['FROM ${base}.history_moves', `FROM ${partsOf(views)}.all_history_sums`],
  ['FROM ${base}.history_gains', `FROM ${partsOf(views)}.all_history_totals`],
] as const

/**
 * The statements that create the views of a cluster, in order. They still contain the placeholders of the databases. Throws if it is not
 * defined how the shards' rows of a view are joined.
 */
export function clusterViews(statements: ViewStatements, cluster: string): string[] {
  const single = viewsOf(statements.migrations)
  const added = viewsOf(statements.parts)
  const shards = [...single.map(onShard), ...added]
  const wholes = [
    ...viewsOf(statements.wholes),
    ...single.filter(({ name }) => daysOfWhole.includes(tableOf(name))).map(withReadsOfWhole),
  ]
  return [
    ...shards.map(view => viewStatement(view, 'SQL SECURITY DEFINER')),
    ...shards.flatMap(view => joinedTable(view, cluster)),
    ...viewsOf(statements.people).map(view => viewStatement(view, 'SQL SECURITY DEFINER')),
    ...wholes.map(view => viewStatement(withHeadOf(view, single), 'SQL SECURITY INVOKER')),
  ]
}

/** The view of one server as a view of one shard. */
function onShard(view: View): View {
  if (view.select.includes(`${views}.`)) throw new Error(`${view.name} reads another view of the data teams`)
  return { ...view, name: view.name.replace(`${views}.`, `${partsOf(views)}.`) }
}

/** The table of the rows that the shards' views have, if there is one. */
function joinedTable({ name, comment }: View, cluster: string): string[] {
  const table = tableOf(name)
  const join = joins[table]
  if (join === undefined)
    throw new Error(`it is not defined how the shards' rows of the view ${table} are joined`)
  if (join === 'own') return []
  const database = name.slice(0, -table.length - 1)
  const target =
    join === 'joined'
      ? `${database}.all_${table}`
      : `${database === partsOf(views) ? views : wholeOf(database)}.${table}`
  const read = join === 'counted' ? countsClusterOf(cluster) : cluster
  return [
    `CREATE OR REPLACE TABLE ${target} AS ${name}
ENGINE = Distributed('${read}', '${database}', '${table}')${comment}`,
  ]
}

function withReadsOfWhole(view: View): View {
  return {
    ...view,
    select: readsOfWhole.reduce((text, [ofShard, ofWhole]) => text.replaceAll(ofShard, ofWhole), view.select),
  }
}

/** The view with the columns and comments of the view of one server. */
function withHeadOf(view: View, single: readonly View[]): View {
  const known = single.find(({ name }) => name === view.name.replace('}_all.', '}.'))
  if (!known) throw new Error(`${view.name} is not a view of one server`)
  return { ...view, columns: known.columns, comment: known.comment }
}

function viewStatement({ name, columns, select, comment }: View, security: string): string {
  return `CREATE OR REPLACE VIEW ${name}${columns}
${security}
AS ${select}${comment}`
}

/** The views that these statements create. */
export function viewsOf(statements: readonly string[]): View[] {
  return statements.filter(statement => statement.startsWith('CREATE OR REPLACE VIEW')).map(parsed)
}

function parsed(statement: string): View {
  const form =
    /^CREATE OR REPLACE VIEW (\S+)(\n\([\s\S]*?\n\))?(?:\nSQL SECURITY DEFINER)?\nAS ([\s\S]*?)(\nCOMMENT '[^\n]*')?$/
  const [, name, columns = '', select, comment = ''] = form.exec(statement) ?? []
  if (name === undefined || select === undefined)
    throw new Error(`the form of this view is not known: ${statement.slice(0, 100)}`)
  return { name, columns, select, comment }
}

function tableOf(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1)
}
