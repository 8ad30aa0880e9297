/**
 * The events of a key's life after its issue, each a whole state. Pure.
 *
 * Several processes may write a key at once, each from the same state, so the versions decide which event holds, whatever
 * the order is in which they are read:
 * - a change of the name or the contact takes a random version above the last one, so that two states never share one;
 * - a revocation, also that of a key that has expired, ranks above these. Nothing takes it back.
 */
import type { ApiKeyState } from '../../contracts/events/event.ts'
import type { Databases, Statement } from '../tables/port.ts'
import type { KeyRecord } from './api-keys.ts'
import { keyPrefixLength, type RandomBytes } from './credentials.ts'

const versionMax = 2n ** 63n - 1n
const revocationStep = 2n ** 40n

/** The key is revoked; `undefined` if it has the highest version already. */
export function revokedState(record: KeyRecord, now: number): ApiKeyState | undefined {
  const version = BigInt(record.version)
  if (version >= versionMax) return undefined
  return { ...stateOf(record, now), status: 'REVOKED', version: atMostMax(version + revocationStep) }
}

/** The key has another name, web address or contact. */
export function changedState(
  record: KeyRecord,
  { name, url, contact_email }: Pick<KeyRecord, 'name' | 'url' | 'contact_email'>,
  now: number,
  randomBytes: RandomBytes,
): ApiKeyState {
  const step = 1 + Buffer.from(randomBytes(3)).readUIntLE(0, 3)
  const version = atMostMax(BigInt(record.version) + BigInt(step))
  return { ...stateOf(record, now), integration: { name, url, contact_email }, version }
}

function atMostMax(version: bigint): bigint {
  return version < versionMax ? version : versionMax
}

function stateOf(record: KeyRecord, now: number): ApiKeyState {
  return {
    key: record.key,
    account_id: record.account_id,
    integration: { name: record.name, url: record.url, contact_email: record.contact_email },
    secret_hash: record.secret_hash,
    scopes: record.scopes,
    status: 'ACTIVE',
    version: BigInt(record.version),
    changed_at: now,
    issued_at: record.issued_at_ms,
    expires_at: record.expires_at_ms,
  }
}

/* Statements that read keys: their ledger rows, with the state that the fold and ClickHouse's clock give them. */

/** The keys of an account, oldest first. It contains contact addresses: only for operators, and for their owner. */
export function accountKeysStatement(databases: Databases, account: string): Statement {
  return keysStatement(databases, 'ledger.account_id = {value:String}', { value: account })
}

/** The key of that name. For a text of 16 characters: the keys that begin with it. */
export function matchingKeysStatement(databases: Databases, keyOrPrefix: string): Statement {
  const isPrefix = keyOrPrefix.length === keyPrefixLength
  const condition = isPrefix
    ? 'startsWith(ledger.api_key, {value:String})'
    : 'ledger.api_key = {value:String}'
  return keysStatement(databases, condition, { value: keyOrPrefix })
}

const columns = `ledger.api_key AS key, toString(ledger.version) AS version, ledger.account_id AS account_id,
              ledger.integration_name AS name, ledger.integration_url AS url,
              ledger.integration_contact_email AS contact_email, ledger.secret_hash AS secret_hash,
              ledger.scopes AS scopes, toUnixTimestamp64Milli(ledger.issued_at) AS issued_at_ms,
              toUnixTimestamp64Milli(ledger.expires_at) AS expires_at_ms`

function keysStatement({ base }: Databases, condition: string, query_params: { value: string }): Statement {
  return {
    // A key that the fold has not seen is not listed, hence the inner join. If there are too many keys, revoked ones are left
    // out, the oldest first.
    query: `SELECT * FROM
            (SELECT ${columns},
              multiIf(NOT ledger.is_unrevoked, 'revoked', ifNull(ledger.expires_at <= now64(3, 'UTC'), 0), 'ended',
                folded.is_active, 'active', 'waiting') AS status
            FROM (SELECT * FROM ${base}.api_key_ledger FINAL) AS ledger
            INNER JOIN (SELECT * FROM ${base}.api_keys FINAL) AS folded ON folded.api_key = ledger.api_key
            WHERE ${condition} AND ledger.account_id != ''
            ORDER BY ledger.is_unrevoked DESC, ledger.issued_at DESC, ledger.api_key DESC LIMIT 1000)
            ORDER BY issued_at_ms, key`,
    query_params,
  }
}
