-- Marks the campaigns in quarantine that are no longer public. It reads no pledge, so no number of pledges keeps a campaign
-- visible after its deletion.
INSERT INTO ${read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
SELECT standing.campaign_id, toFixedString('', 16),
    greatest(${stamp}, standing.updated_at + toIntervalMillisecond(1)), {fold_id:UInt64}, 1
FROM
(
    SELECT campaign_id, updated_at FROM ${read}.campaigns FINAL
    WHERE campaign_id IN (SELECT campaign_id FROM ${ledger}.quarantine FINAL WHERE is_quarantined)
) AS standing
WHERE standing.campaign_id IN
    (
        SELECT campaign_id FROM ${ledger}.campaign_ledger FINAL
        WHERE NOT is_public
            AND campaign_id IN (SELECT campaign_id FROM ${ledger}.quarantine FINAL WHERE is_quarantined)
    )
    AND ${fence} AND ${clock_fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0
