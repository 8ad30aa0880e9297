/**
 * The tables port: what the services need of ClickHouse, over a server or in-process.
 *
 * Promises that every implementation keeps (test/integration/tables.conformance.ts):
 * - a resolved `insert` or `run` is durable and visible to every later statement;
 * - statements run side by side; a slow one does not hold up the others;
 * - a failed statement rejects with `TablesError`, which says whether trying again can help.
 *
 * Settings stand in the statement's own text (`SETTINGS ...`): in-process ClickHouse would keep those of a
 * client call for every later statement of the connection.
 */

/** A statement with typed placeholders, `{name:Type}`. */
export interface Statement {
  query: string
  query_params?: Record<string, unknown>
}

/** Rows for one table, already in the text form of `format`, one line each. */
export interface TableInsert {
  /** Qualified name. */
  table: string
  columns: readonly string[]
  format: 'TSV' | 'JSONCompactEachRow'
  body: string
}

export interface CallOptions {
  /** Ends the wait of the caller; the statement's own `max_execution_time` ends the work. */
  signal?: AbortSignal
}

export interface Tables {
  /** Rows as JSON objects. 64-bit integers are numbers, decimals are numbers, timestamps are text. */
  rows<Row>(statement: Statement, options?: CallOptions): Promise<Row[]>
  run(statement: Statement, options?: CallOptions): Promise<void>
  insert(insert: TableInsert, options?: CallOptions): Promise<void>
  close(): Promise<void>
}

/** Names of the two databases: the private model, and the data teams' views. */
export interface Databases {
  model: string
  views: string
}

/** Where one folder works: tables, and the names of their databases. On a cluster, a shard's own part of them. */
export interface Shard {
  tables: Tables
  databases: Databases
}

export const defaultDatabases: Databases = {
  model: 'pledgeview',
  views: 'crowdfunding',
}

/** A statement failed. `retryable` says whether the same statement may succeed later. */
export class TablesError extends Error {
  override name = 'TablesError'
  readonly retryable: boolean
  /** ClickHouse's error name, for example TIMEOUT_EXCEEDED, where it gave one. */
  readonly type: string | undefined

  constructor(message: string, options: { retryable: boolean; type?: string | undefined; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.retryable = options.retryable
    this.type = options.type
  }
}
