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

/**
 * What the sweeper has to write, at most `rowsMax` keys:
 * - keys that expired at least `graceMs` ago, and that are not revoked yet;
 * - keys that another one replaces, and that do not expire yet. The other one was issued at least `graceMs` ago: a younger
 *   one may still be withdrawn.
 */
export function sweepStatement(
  { base }: Databases,
  { graceMs, rowsMax }: { graceMs: number; rowsMax: number },
): Statement {
  const before = `now64(3, 'UTC') - toIntervalMillisecond({grace_ms:UInt32})`
  return {
    query: `SELECT ${columns},
              if(${hasEnded(before)}, 'ended', 'replaced') AS work,
              successors.until AS expires_ms
            FROM (SELECT * FROM ${base}.api_key_ledger FINAL WHERE is_unrevoked AND account_id != '') AS ledger
            LEFT JOIN
            (
                SELECT replaces AS old_key, account_id AS of_account,
                    min(toUnixTimestamp64Milli(replaced_until)) AS until
                FROM ${base}.api_key_ledger FINAL
                WHERE replaces != '' AND replaced_until IS NOT NULL AND issued_at <= ${before} AND account_id != ''
                GROUP BY old_key, of_account
            ) AS successors ON successors.old_key = ledger.api_key AND successors.of_account = ledger.account_id
            WHERE ${hasEnded(before)} OR (successors.until IS NOT NULL AND ledger.expires_at IS NULL)
            ORDER BY ledger.issued_at, ledger.api_key LIMIT {rows_max:UInt32}
            SETTINGS join_use_nulls = 0`,
    query_params: { grace_ms: graceMs, rows_max: rowsMax },
  }
}

function hasEnded(time: string): string {
  return `ifNull(ledger.expires_at <= ${time}, 0)`
}

const columns = `ledger.api_key AS key, toString(ledger.version) AS version, ledger.account_id AS account_id,
              ledger.integration_name AS name, ledger.integration_url AS url,
              ledger.integration_contact_email AS contact_email, ledger.secret_hash AS secret_hash,
              ledger.scopes AS scopes, toUnixTimestamp64Milli(ledger.issued_at) AS issued_at_ms,
              ledger.integration_id AS integration_id,
              toUnixTimestamp64Milli(ledger.expires_at) AS expires_at_ms, ledger.replaces AS replaces,
              toUnixTimestamp64Milli(ledger.replaced_until) AS replaced_until_ms`

function keysStatement({ base }: Databases, condition: string, query_params: { value: string }): Statement {
  return {
    // A key that the fold has not seen is not listed, hence the inner join. If there are too many keys, revoked ones are left
    // out, the oldest first.
    query: `SELECT * FROM
            (SELECT ${columns},
              multiIf(NOT ledger.is_unrevoked, 'revoked', ${hasEnded("now64(3, 'UTC')")}, 'ended',
                folded.is_active, 'active', 'waiting') AS status
            FROM (SELECT * FROM ${base}.api_key_ledger FINAL) AS ledger
            INNER JOIN (SELECT * FROM ${base}.api_keys FINAL) AS folded ON folded.api_key = ledger.api_key
            WHERE ${condition} AND ledger.account_id != ''
            ORDER BY ledger.is_unrevoked DESC, ledger.issued_at DESC, ledger.api_key DESC LIMIT 1000)
            ORDER BY issued_at_ms, key`,
    query_params,
  }
}
