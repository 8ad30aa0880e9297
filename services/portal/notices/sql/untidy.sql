-- What has to be tidied: mails that have waited since before `waits_since` or whose account is deleted ('gone'), and settled
-- notices that are not needed any more ('over').

SELECT
    notice_id,
    rule,
    status,
    nullIf(notices.account_id, '') AS account_id,
    attempts,
    toUnixTimestamp64Milli(notices.created_at) AS created_at,
    if(status = 'WAITING', 'gone', 'over') AS work
FROM (SELECT * FROM ${base}.notice_ledger FINAL) AS notices
LEFT JOIN
(
    SELECT account_id, 1 AS is_deleted
    FROM (SELECT * FROM ${base}.account_ledger FINAL)
    WHERE integration_id = '' AND email = ''
) AS deleted ON deleted.account_id = notices.account_id
WHERE rule != ''
    AND if(status = 'WAITING',
        deleted.is_deleted OR toUnixTimestamp64Milli(notices.created_at) < {waits_since:Int64},
        toUnixTimestamp64Milli(notices.changed_at) < if(rule = 'ANNOUNCEMENT', {announced_since:Int64}, {settled_since:Int64}))
ORDER BY notices.changed_at, notice_id
LIMIT {rows_max:UInt32}
SETTINGS max_execution_time = 30, join_use_nulls = 0
