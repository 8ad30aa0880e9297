/** Reads accounts in the ledger. */
import { type AccountEvent, versionIn } from '../../../contracts/events/portal-event.ts'
import { nameDatabases } from '../../tables/migrate.ts'
import type { Databases, Tables } from '../../tables/port.ts'
import { readSql } from '../../tables/read-sql.ts'
import type { Account } from '../ports.ts'

export interface LedgerTables {
  tables: Pick<Tables, 'rows'>
  databases: Databases
}

/** The row of an account. Times are Unix milliseconds. */
export interface LedgerRow {
  account_id: string
  version: bigint
  /** Empty: deleted. */
  email: string
  created_at_ms: number
  sessions_valid_from_ms: number
  changed_at_ms: number
  /** Since the row came, by ClickHouse's clock. */
  age_ms: number
}

const accountSql = readSql('account', import.meta.url)
const unfinishedSql = readSql('unfinished', import.meta.url)
const readMsMax = 10_000
const unfinishedMsMax = 65_000
const keySampleMax = 100

/** The account, whether it is deleted or not. */
export async function readAccount(
  { tables, databases }: LedgerTables,
  accountId: string,
): Promise<LedgerRow | undefined> {
  const [row] = await tables.rows<Omit<LedgerRow, 'version'> & { version: string }>(
    { query: nameDatabases(accountSql, databases), query_params: { account_id: accountId } },
    { signal: AbortSignal.timeout(readMsMax) },
  )
  return row && { ...row, version: BigInt(row.version) }
}

/** The accounts of which something is left that has to go. */
export async function readUnfinished(
  { tables, databases }: LedgerTables,
  settledMs: number,
): Promise<string[]> {
  const query_params = { life: String(versionIn(1n, 0)), settled_ms: settledMs }
  const rows = await tables.rows<{ account_id: string }>(
    { query: nameDatabases(unfinishedSql, databases), query_params },
    { signal: AbortSignal.timeout(unfinishedMsMax) },
  )
  return rows.map(({ account_id }) => account_id)
}

/** Whether the ledger has keys of the account that are not deleted. */
export async function hasKeys({ tables, databases }: LedgerTables, accountId: string): Promise<boolean> {
  const [found] = await tables.rows<{ keys: number }>(
    {
      query: `SELECT count() AS keys FROM ${databases.base}.api_key_ledger FINAL WHERE account_id = {account_id:String}`,
      query_params: { account_id: accountId },
    },
    { signal: AbortSignal.timeout(readMsMax) },
  )
  return Number(found?.keys) > 0
}

/** Some accounts that are not deleted. */
export function sampleAccounts({
  tables,
  databases,
}: LedgerTables): Promise<Pick<Account, 'account_id' | 'email'>[]> {
  return tables.rows(
    {
      query: `SELECT account_id, email FROM ${databases.base}.account_ledger FINAL
              WHERE email != '' LIMIT {rows_max:UInt32}`,
      query_params: { rows_max: keySampleMax },
    },
    { signal: AbortSignal.timeout(readMsMax) },
  )
}

/** The account, unless it is deleted. */
export function liveAccount(account: LedgerRow | undefined): (Account & { version: bigint }) | undefined {
  if (!account || account.email === '') return undefined
  const { account_id, email, version, created_at_ms, sessions_valid_from_ms } = account
  return {
    account_id,
    email,
    version,
    created_at: created_at_ms,
    sessions_valid_from: sessions_valid_from_ms,
  }
}

/** The state that a row was written from. */
export function eventOf(row: LedgerRow): AccountEvent {
  const { account_id, email } = row
  const times = {
    created_at: row.created_at_ms,
    sessions_valid_from: row.sessions_valid_from_ms,
    changed_at: row.changed_at_ms,
  }
  return { type: 'account', data: { account_id, email, ...times, version: longOf(row.version) } }
}

/** The version as Avro takes it. */
export function longOf(version: bigint): number | bigint {
  return version <= Number.MAX_SAFE_INTEGER ? Number(version) : version
}
