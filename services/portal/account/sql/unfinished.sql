-- The accounts of which something is left: keys of a deleted account, integrations of an earlier version, or a deletion that is
-- older than `settled_ms` and was not appended a second time (accounts.ts says why it is).

SELECT account_id
FROM
(
    SELECT
        account_id,
        countIf(integration_id = '') > 0 AND maxIf(email, integration_id = '') = '' AS is_deleted,
        countIf(email = '' AND written_at < now64(3, 'UTC') - toIntervalMillisecond({settled_ms:UInt32})
            AND version % {life:UInt64} = if(integration_id = '', 0, {removed:UInt64})) > 0 AS is_due,
        countIf(integration_id != '' AND email != '') AS integrations
    FROM (SELECT * FROM ${base}.account_ledger FINAL)
    GROUP BY account_id
) AS accounts
LEFT JOIN
(
    SELECT account_id, count() AS keys
    FROM (SELECT * FROM ${base}.api_key_ledger FINAL)
    WHERE account_id != ''
    GROUP BY account_id
) AS held ON held.account_id = accounts.account_id
WHERE integrations > 0
    OR is_deleted AND held.keys > 0
    OR is_due AND NOT (is_deleted AND held.keys > 0)
ORDER BY account_id
LIMIT 1000
SETTINGS max_execution_time = 60, join_use_nulls = 0
