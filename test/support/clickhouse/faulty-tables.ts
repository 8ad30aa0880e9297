/** Tables with faults: they fail before a statement runs or after it has run, or delay it. */
import { writtenTables } from '../../../services/projector/fold/line.ts'
import { type Statement, type Tables, TablesError } from '../../../services/tables/port.ts'

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
    rows: (statement, options) => around(callOf('rows', statement), () => tables.rows(statement, options)),
    run: (statement, options) => around(callOf('run', statement), () => tables.run(statement, options)),
    insert: (insert, options) =>
      around(callOf('insert', { query: `INSERT INTO ${insert.table}` }), () =>
        tables.insert(insert, options),
      ),
    close: () => tables.close(),
  }
}

function callOf(kind: TablesCall['kind'], { query, query_params = {} }: Statement): TablesCall {
  return { kind, text: query, query_params }
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
export function isCampaignFold(call: TablesCall): boolean {
  return writes('campaigns', call) && call.text.includes('AS touched')
}

/** Whether it folds this campaign alone. */
export function isAloneFold(call: TablesCall, campaign: string): boolean {
  return isCampaignFold(call) && call.query_params.campaign === campaign
}

/** Whether it marks the campaigns in quarantine that are no longer public. */
export function isKeyFold(call: TablesCall): boolean {
  return writes('api_keys', call)
}

/** Whether it is the statement that records a finished fold. */
export function isFoldRecord(call: TablesCall): boolean {
  return writes('fold_progress', call)
}

export function isWatermark(call: TablesCall): boolean {
  return writes('watermarks', call)
}

/** Whether it is a statement of the fold's line. */
export function isOfLine(call: TablesCall): boolean {
  return writtenTables.some(table => writes(table, call))
}

function writes(table: string, { kind, text }: TablesCall): boolean {
  return kind === 'run' && new RegExp(`INSERT INTO \\w+\\.${table}\\s`).test(text)
}
