-- Notices by their ids, as the ledger has them (private).

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
WHERE rule != '' AND ledger.notice_id IN {ids:Array(String)}
SETTINGS max_execution_time = 10
