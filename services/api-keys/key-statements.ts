/** Statements that read keys: their ledger rows, with the state that the fold and ClickHouse's clock give them. */
import type { Databases, Statement } from '../tables/port.ts'
import { keyPrefixLength } from './credentials.ts'

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
