-- The notices that were settled before `since`. Nobody needs them.

SELECT notice_id
FROM (SELECT * FROM ${base}.notice_ledger FINAL) AS ledger
WHERE rule != '' AND status != 'WAITING' AND toUnixTimestamp64Milli(changed_at) < {since:Int64}
ORDER BY changed_at, notice_id
LIMIT {rows_max:UInt32}
