-- The notices whose mail waits, the oldest first (private). What was created before `since` is given up, not sent.

SELECT
    notice_id,
    rule,
    status,
    nullIf(account_id, '') AS account_id,
    recipient,
    subject,
    text,
    attempts,
    toUnixTimestamp64Milli(created_at) AS created_at,
    toUnixTimestamp64Milli(sent_at) AS sent_at,
    toUnixTimestamp64Milli(changed_at) AS changed_at
FROM (SELECT * FROM ${base}.notice_ledger FINAL) AS ledger
WHERE status = 'WAITING' AND toUnixTimestamp64Milli(ledger.created_at) >= {since:Int64}
ORDER BY ledger.created_at, notice_id
LIMIT {rows_max:UInt32}
SETTINGS max_execution_time = 10
