/**
 * The tables port: what the services need of ClickHouse. The adapter is in clickhouse.ts.
 *
 * Promises (test/integration/tables/tables.test.ts):
 * - a resolved `insert` or `run` is durable and visible to every later statement;
 * - statements run side by side; a slow one does not hold up the others;
 * - a failed statement rejects with `TablesError`, which says whether trying again can help.
 */
import type { TableColumn } from './clickhouse/row-binary.ts'

/** A statement with typed placeholders, `{name:Type}`. */
export interface Statement {
  query: string
  query_params?: Record<string, unknown>
}

/** Rows for one table. Columns are named, so a table may get more columns later. */
export interface TableInsert {
  /** Qualified name. */
  table: string
  columns: readonly TableColumn[]
  /** As `createRowWriter` or `encodeRows` gives them for these columns (row-binary.ts). */
  rows: Uint8Array
}

export interface CallOptions {
  /** Ends the wait of the caller. The statement's own `max_execution_time` ends its work. */
  signal?: AbortSignal
  /** How many of ClickHouse's threads the statement may use. Default: one a core. Inserts of rows take one. */
  threadsMax?: number
}

export interface Tables {
  /** Rows as JSON objects. 64-bit integers are numbers, decimals are numbers, timestamps are text. */
  rows<Row>(statement: Statement, options?: CallOptions): Promise<Row[]>
  run(statement: Statement, options?: CallOptions): Promise<void>
  insert(insert: TableInsert, options?: CallOptions): Promise<void>
  close(): Promise<void>
}

/** The same tables, with something around each call. `text`: the statement, or the table of an insert. */
export function around(
  tables: Tables,
  call: <Result>(work: () => Promise<Result>, text: string) => Promise<Result>,
): Tables {
  return {
    rows: (statement, options) => call(() => tables.rows(statement, options), statement.query),
    run: (statement, options) => call(() => tables.run(statement, options), statement.query),
    insert: (insert, options) => call(() => tables.insert(insert, options), insert.table),
    close: () => tables.close(),
  }
}

/** The databases beside the generations: what is no function of the events alone, and the data teams' views. */
export interface BaseDatabases {
  readonly base: string
  readonly views: string
}

/** Names of databases: those, and the two of one generation (generation-log.ts). */
export interface Databases extends BaseDatabases {
  /** Private: ledgers, batch log, positions, leadership. */
  readonly ledger: string
  /** Read tables and watermark. */
  readonly read: string
}

/**
 * What one fold worker works on: tables, and the names of their databases. On a cluster: one shard's part of the
 * tables.
 */
export interface Shard {
  tables: Tables
  databases: Databases
}

export const defaultNames: BaseDatabases = { base: 'pledgeview', views: 'crowdfunding' }

/** A statement failed. `retryable`: whether the same statement may succeed later. */
export class TablesError extends Error {
  override name = 'TablesError'
  readonly retryable: boolean
  /** ClickHouse's error name, for example TIMEOUT_EXCEEDED, if it gave one. */
  readonly type: string | undefined

  constructor(message: string, options: { retryable: boolean; type?: string | undefined; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.retryable = options.retryable
    this.type = options.type
  }
}
