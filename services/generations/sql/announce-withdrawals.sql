-- Runs before the withdrawn rows are copied. It tells the fold of the new generation which campaigns they touch, as the
-- batch of a projector would. It runs first, so that a rebuild that is killed in between still folds them.
--
-- A tombstone touches its campaign also if the new ledger has it already but the read table still shows the campaign.
INSERT INTO ${ledger}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
SELECT {projector:String}, 1, [], length(touched_campaigns), 0, 0, touched_campaigns, now64(3, 'UTC')
FROM
(
    SELECT groupUniqArray(campaign_id) AS touched_campaigns
    FROM
    (
        ${withdrawn_campaigns}
        UNION ALL
        SELECT campaign_id FROM ${read}.campaigns FINAL
        WHERE ${scope} AND campaign_id IN
            (SELECT campaign_id FROM ${live}.campaign_ledger WHERE version = ${tombstone} AND ${scope})
    )
)
WHERE touched_campaigns != []
SETTINGS async_insert = 0
