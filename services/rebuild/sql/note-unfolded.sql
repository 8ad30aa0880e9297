-- Runs in the fold pause, before the swap. The batches that the live fold has not folded, and the campaigns in quarantine,
-- become one batch of the shadow tables' batch log. After the swap, that log is the one of the previous tables. The batch log drops
-- what is a month old, but not this: previous tables may be kept for longer.
INSERT INTO ${model}.batch_log
    (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at, appended_at)
SELECT
    {projector:String}, 1, [], length(unfolded_campaigns), 0, unfolded_keys, unfolded_campaigns,
    now64(3, 'UTC'), now64(3, 'UTC') + INTERVAL 20 YEAR
FROM
(
    SELECT groupUniqArrayArray(ids) AS unfolded_campaigns, sum(key_events) AS unfolded_keys
    FROM
    (
        SELECT campaign_ids AS ids, keys AS key_events FROM ${live}.batch_log AS batch WHERE ${unfolded}
        UNION ALL
        SELECT [campaign_id], 0 FROM ${live}.quarantine FINAL WHERE is_quarantined
    )
)
WHERE unfolded_campaigns != [] OR unfolded_keys > 0
SETTINGS async_insert = 0
