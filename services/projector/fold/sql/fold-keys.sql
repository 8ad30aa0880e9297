-- Recomputes the key table from the key ledger. The three oldest unrevoked keys of an account are active, in whatever
-- order the events came. There are few keys, so every fold looks at all of them, and writes only changes.
INSERT INTO ${base}.api_keys (api_key, account_id, secret_hash, scopes, is_active, updated_at, fold_id, is_deleted)
WITH
    fresh AS
    (
        SELECT
            api_key,
            account_id,
            secret_hash,
            scopes,
            is_unrevoked AND row_number() OVER (
                PARTITION BY account_id ORDER BY is_unrevoked DESC, issued_at, api_key
            ) <= {active_keys_max:UInt8} AS is_active
        FROM ${base}.api_key_ledger FINAL
    )
SELECT
    fresh.api_key, fresh.account_id, fresh.secret_hash, fresh.scopes, fresh.is_active,
    now64(3, 'UTC'), {fold_id:UInt64}, 0
FROM fresh
LEFT JOIN
(
    SELECT api_key, account_id, secret_hash, scopes, is_active, true AS stands FROM ${base}.api_keys FINAL
) AS standing ON standing.api_key = fresh.api_key
WHERE (NOT standing.stands
        OR (fresh.account_id, fresh.secret_hash, fresh.scopes, fresh.is_active)
            != (standing.account_id, standing.secret_hash, standing.scopes, standing.is_active))
    AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0, join_use_nulls = 0
