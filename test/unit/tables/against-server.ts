/** The server's tables against a server that misbehaves. What a test opens is closed after it. */
import { expect, onTestFinished } from 'vitest'
import { openTables, type TablesSettings } from '../../../services/tables/clickhouse/clickhouse.ts'
import { encodeRows } from '../../../services/tables/clickhouse/row-binary.ts'
import { type TableInsert, type Tables, TablesError } from '../../../services/tables/port.ts'
import {
  type Behaviour,
  type MisbehavingServer,
  startMisbehavingServer,
} from '../../support/servers/misbehaving-server.ts'

export const user = 'pledgeview'
export const password = 'a-password-of-its-own'
const columns = [
  { name: 'a', type: 'UInt8' },
  { name: 'b', type: 'String' },
]
/** Rows that no error may quote. */
export const insert: TableInsert = {
  table: 'model.pledge_ledger',
  columns,
  rows: encodeRows(columns, [[1, 'mind@private.example']]),
}

export function open(url: string, settings: Partial<TablesSettings> = {}): Tables {
  const tables = openTables({
    url,
    user,
    password,
    silenceMsMax: 5_000,
    connectionsMax: 4,
    idleConnectionMsMax: 1_000,
    ...settings,
  })
  onTestFinished(() => tables.close())
  return tables
}

export async function against(
  behaviours: readonly [Behaviour, ...Behaviour[]],
  settings: Partial<TablesSettings> = {},
): Promise<{ server: MisbehavingServer; tables: Tables }> {
  const server = await startMisbehavingServer(behaviours)
  onTestFinished(() => server.close())
  return { server, tables: open(server.url, settings) }
}

/** The error of what has to fail, which quotes neither the password nor a row. */
export async function failureOf(done: Promise<unknown>): Promise<TablesError> {
  const error = await done.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  expect(error).toBeInstanceOf(TablesError)
  expect(everyTextOf(error)).not.toContain(password)
  expect(everyTextOf(error)).not.toContain('private.example')
  return error as TablesError
}

export async function expectAbandoned(done: Promise<unknown>): Promise<void> {
  const error = await failureOf(done)
  expect(error).toMatchObject({ retryable: false, type: undefined })
  expect(error.message).toContain('no longer waits')
}

/** All that a log could print of an error: messages, stacks and the chain of causes. */
function everyTextOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return `${error.stack} ${JSON.stringify(error)} ${everyTextOf(error.cause)}`
}
