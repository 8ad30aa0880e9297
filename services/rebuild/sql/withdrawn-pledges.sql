-- Pledges of these campaigns that are deleted, or no longer count, a page of them (compare-pledges.ts).
SELECT campaign_id, pledge_id, toString(version) AS version
FROM ${model}.pledge_ledger FINAL
WHERE campaign_id IN {campaigns:Array(String)} AND NOT counts
    AND (campaign_id, pledge_id) > ({after_campaign:String}, {after_pledge:String})
ORDER BY campaign_id, pledge_id
LIMIT {rows_max:UInt32}
