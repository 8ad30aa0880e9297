/** Reads accounts in the ledger. */
import { type AccountEvent, versionIn } from '../../../contracts/events/portal-event.ts'
import { readSql } from '../../tables/read-sql.ts'
import type { Account } from '../ports.ts'
import { type Place, readRows } from '../reading.ts'

/** The state of an account, deleted if it has no address, and since when and for how long the ledger has had it by ClickHouse's clock. */
export interface LedgerRow extends Omit<AccountEvent['data'], 'version'> {
  version: bigint
  came_at: number
  age_ms: number
}

const accountSql = readSql('account', import.meta.url)
const unfinishedSql = readSql('unfinished', import.meta.url)
const readMsMax = 10_000
const unfinishedMsMax = 65_000

/** The account, whether it is deleted or not. */
export async function readAccount(place: Place, account_id: string): Promise<LedgerRow | undefined> {
  type Row = Omit<LedgerRow, 'version'> & { version: string }
  const [row] = await readRows<Row>(place, accountSql, readMsMax, { account_id })
  return row && { ...row, version: BigInt(row.version) }
}

/** The accounts of which something is left that has to go. */
export async function readUnfinished(place: Place, settled_ms: number): Promise<string[]> {
  const query_params = { life: String(versionIn(1n, 0)), settled_ms }
  const rows = await readRows<{ account_id: string }>(place, unfinishedSql, unfinishedMsMax, query_params)
  return rows.map(({ account_id }) => account_id)
}

/** Whether the ledger has keys of the account that are not deleted. */
export async function hasKeys(place: Place, account_id: string): Promise<boolean> {
  const keysSql = `SELECT count() AS keys FROM ${place.databases.base}.api_key_ledger FINAL WHERE account_id = {account_id:String}`
  const [found] = await readRows<{ keys: number }>(place, keysSql, readMsMax, { account_id })
  return Number(found?.keys) > 0
}

/** The account, unless it is deleted. */
export function liveAccount(account: LedgerRow | undefined): (Account & { version: bigint }) | undefined {
  if (!account || account.email === '') return undefined
  const { account_id, email, version, created_at, sessions_valid_from } = account
  return { account_id, email, version, created_at, sessions_valid_from }
}

/** The state that a row was written from. */
export function eventOf({ came_at, age_ms, version, ...state }: LedgerRow): AccountEvent {
  return { type: 'account', data: { ...state, version: longOf(version) } }
}

/** The version as Avro takes it. */
export function longOf(version: bigint): number | bigint {
  return version <= Number.MAX_SAFE_INTEGER ? Number(version) : version
}
