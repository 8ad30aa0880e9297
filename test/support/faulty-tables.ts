/** Tables with something in the way: to fail before a statement runs, or after it has, or to hold it up. */
import { type Tables, TablesError } from '../../services/shared/tables/port.ts'

/** One call of the port: the statement's text, or `INSERT INTO` and the table. */
export interface TablesCall {
  kind: 'rows' | 'run' | 'insert'
  text: string
  query_params: Readonly<Record<string, unknown>>
}

export interface Obstacles {
  /** Throws: the statement does not run. */
  before?: (call: TablesCall) => Promise<void> | void
  /** Throws: the statement has run, and its caller does not learn of it. */
  after?: (call: TablesCall) => Promise<void> | void
}

export function obstructed(tables: Tables, { before, after }: Obstacles): Tables {
  async function around<T>(call: TablesCall, work: () => Promise<T>): Promise<T> {
    await before?.(call)
    const result = await work()
    await after?.(call)
    return result
  }
  return {
    rows: (statement, options) =>
      around({ kind: 'rows', text: statement.query, query_params: statement.query_params ?? {} }, () =>
        tables.rows(statement, options),
      ),
    run: (statement, options) =>
      around({ kind: 'run', text: statement.query, query_params: statement.query_params ?? {} }, () =>
        tables.run(statement, options),
      ),
    insert: (insert, options) =>
      around({ kind: 'insert', text: `INSERT INTO ${insert.table}`, query_params: {} }, () =>
        tables.insert(insert, options),
      ),
    close: () => tables.close(),
  }
}

/** As when the connection breaks: nobody knows what became of the statement. */
export function lostConnection(): TablesError {
  return new TablesError('the connection was lost', { retryable: true })
}

/** As when ClickHouse ends a statement for its time. */
export function timeoutExceeded(): TablesError {
  return new TablesError('Timeout exceeded', { retryable: true, type: 'TIMEOUT_EXCEEDED' })
}

/** The fold's statement over campaigns, and no other. */
export function isCampaignFold({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.campaigns /.test(text) && text.includes('touched AS')
}

export function isKeyFold({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.api_keys /.test(text)
}

/** The statement that stamps rows in doubt anew. */
export function isRestamp({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.campaigns /.test(text) && !text.includes('touched AS')
}

/** The statement that records a finished fold. */
export function isFoldRecord({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.fold_log /.test(text)
}
