/** Tables with faults: they fail before a statement runs or after it has run, or delay it. */
import { type Tables, TablesError } from '../../services/shared/tables/port.ts'

/** One call of the port: the statement's text, or `INSERT INTO` and the table. */
export interface TablesCall {
  kind: 'rows' | 'run' | 'insert'
  text: string
  query_params: Readonly<Record<string, unknown>>
}

export interface Obstacles {
  /** If it throws, the statement does not run. */
  before?: (call: TablesCall) => Promise<void> | void
  /** If it throws, the statement has run, but its caller does not know. */
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

/** The error of a broken connection: it is not known whether the statement has run. */
export function lostConnection(): TablesError {
  return new TablesError('the connection was lost', { retryable: true })
}

/** The error of a statement that ClickHouse cancelled after its time limit. */
export function timeoutExceeded(): TablesError {
  return new TablesError('Timeout exceeded', { retryable: true, type: 'TIMEOUT_EXCEEDED' })
}

/** Whether it is the fold's statement over campaigns. */
export function isCampaignFold({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.campaigns /.test(text) && text.includes('touched AS')
}

export function isKeyFold({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.api_keys /.test(text)
}

/** Whether it is the restamp statement. */
export function isRestamp({ kind, text }: TablesCall): boolean {
  const isFold = text.includes('touched AS') || text.includes('staged_campaigns')
  return kind === 'run' && /INSERT INTO \w+\.campaigns /.test(text) && !isFold
}

/** Whether it is the statement that folds a campaign alone. */
export function isStaging({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.staged_campaigns /.test(text)
}

/** Whether it is the statement that records a finished fold. */
export function isFoldRecord({ kind, text }: TablesCall): boolean {
  return kind === 'run' && /INSERT INTO \w+\.fold_log /.test(text)
}
