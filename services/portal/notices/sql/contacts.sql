-- The contact addresses of active keys (private), each once. With `only_called`: of keys that called the API in the last 90 days;
-- with `only_deprecated` too: that called a deprecated version.

SELECT DISTINCT ledger.integration_contact_email AS contact_email
FROM (SELECT * FROM ${base}.api_key_ledger FINAL) AS ledger
INNER JOIN (SELECT * FROM ${base}.api_keys FINAL) AS folded ON folded.api_key = ledger.api_key
WHERE ledger.is_unrevoked AND folded.is_active AND ledger.account_id != '' AND ledger.integration_contact_email != ''
    AND ifNull(ledger.expires_at > now64(3, 'UTC'), 1)
    AND
    (
        NOT {only_called:Bool} OR ledger.api_key IN
        (
            SELECT api_key
            FROM ${base}.api_key_usage FINAL
            GROUP BY api_key
            HAVING if({only_deprecated:Bool}, sum(deprecated), sum(ok + not_modified + too_many + other)) > 0
        )
    )
ORDER BY contact_email
LIMIT {rows_max:UInt32}
SETTINGS do_not_merge_across_partitions_select_final = 1
