-- Runs before the withdrawn rows are copied. It tells the fold of the shadow tables which campaigns they touch, as the
-- batch of a projector would. It runs first, so that a rebuild that is killed in between still folds them.
--
-- A tombstone touches its campaign also if the shadow ledger has it already but the read table still shows the campaign.
INSERT INTO ${model}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
SELECT {projector:String}, 1, [], length(touched_campaigns), 0, touched_keys, touched_campaigns, now64(3, 'UTC')
FROM
(
    SELECT groupUniqArrayIf(campaign_id, is_campaign) AS touched_campaigns, countIf(NOT is_campaign) AS touched_keys
    FROM
    (
        SELECT campaign_id, true AS is_campaign FROM (${withdrawn_campaigns})
        UNION ALL
        SELECT campaign_id, true FROM (${withdrawn_pledges})
        UNION ALL
        SELECT campaign_id, true FROM ${model}.campaigns FINAL
        WHERE ${scope} AND campaign_id IN
            (SELECT campaign_id FROM ${live}.campaign_ledger WHERE version = ${tombstone} AND ${scope})
        UNION ALL
        SELECT api_key, false FROM (${withdrawn_keys})
    )
)
WHERE touched_campaigns != [] OR touched_keys > 0
SETTINGS async_insert = 0, join_use_nulls = 0
