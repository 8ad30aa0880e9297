-- The notices whose mail waits, without the mail: the oldest first, and announcements last, because they are many (private). `is_over`: it was created before `since`, or its account is deleted.

SELECT
    notice_id,
    rule,
    nullIf(account_id, '') AS account_id,
    toUnixTimestamp64Milli(ledger.created_at) AS created_at,
    toBool(toUnixTimestamp64Milli(ledger.created_at) < {since:Int64} OR ledger.account_id GLOBAL IN
    (
        SELECT account_id
        FROM ${base}.account_ledger FINAL
        WHERE email = ''
            AND account_id GLOBAL IN (SELECT account_id FROM ${base}.notice_ledger WHERE status = 'WAITING')
    )) AS is_over
FROM (SELECT * FROM ${base}.notice_ledger FINAL) AS ledger
WHERE status = 'WAITING'
ORDER BY rule = 'ANNOUNCEMENT', ledger.created_at, notice_id
LIMIT {rows_max:UInt32}
