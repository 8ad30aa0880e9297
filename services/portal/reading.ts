/** How the portal reads tables: one statement, within its time. */

import { timeBound } from '../tables/clickhouse/statements.ts'
import type { Databases, Statement, Tables } from '../tables/port.ts'
import { nameDatabases } from '../tables/sql-text.ts'

export interface Place {
  tables: Pick<Tables, 'rows'>
  databases: Databases
}

/**
 * The rows of this text, which names its databases as the files of migrations do, and may end with settings. ClickHouse ends a read that
 * takes longer than `msMax`. If it is silent, this throws a second later.
 */
export function readRows<Row>(
  { tables, databases }: Place,
  sql: string,
  query_params: Statement['query_params'] = {},
  msMax = 10_000,
): Promise<Row[]> {
  const bound = `${/^SETTINGS /m.test(sql) ? ',' : '\nSETTINGS'} ${timeBound(msMax)}`
  const statement = { query: nameDatabases(sql, databases) + bound, query_params }
  return tables.rows<Row>(statement, { signal: AbortSignal.timeout(msMax + 1_000) })
}
