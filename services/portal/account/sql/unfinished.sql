-- The accounts of which something is left: keys of a deleted account, or a deletion that is older than `settled_ms` and was not
-- appended a second time (accounts.ts says why it is).

SELECT account_id
FROM
(
    SELECT
        account_id,
        written_at < now64(3, 'UTC') - toIntervalMillisecond({settled_ms:UInt32}) AND version % {life:UInt64} = 0 AS is_due
    FROM ${base}.account_ledger FINAL
    WHERE email = ''
) AS deleted
LEFT JOIN
(
    SELECT account_id, count() AS keys
    FROM (SELECT * FROM ${base}.api_key_ledger FINAL)
    WHERE account_id != ''
    GROUP BY account_id
) AS held ON held.account_id = deleted.account_id
WHERE held.keys > 0 OR is_due
ORDER BY account_id
LIMIT 1000
SETTINGS join_use_nulls = 0
