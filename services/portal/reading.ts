/** How the portal reads tables: one statement, within its time. */

import type { Databases, Statement, Tables } from '../tables/port.ts'
import { nameDatabases } from '../tables/sql-text.ts'

export interface Place {
  tables: Pick<Tables, 'rows'>
  databases: Databases
}

/** The rows of this text, which names its databases as the files of migrations do. A read that takes longer than `msMax` throws. */
export function readRows<Row>(
  { tables, databases }: Place,
  sql: string,
  msMax: number,
  query_params: Statement['query_params'] = {},
): Promise<Row[]> {
  const statement = { query: nameDatabases(sql, databases), query_params }
  return tables.rows<Row>(statement, { signal: AbortSignal.timeout(msMax) })
}
