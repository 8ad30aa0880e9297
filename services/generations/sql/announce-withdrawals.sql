-- Runs before the withdrawn rows are copied. It tells the fold of the new generation which campaigns they touch, as the
-- batch of a projector would. It runs first, so that a rebuild that is killed in between still folds them.
--
-- What is hidden or deleted touches its campaign also if the new ledger has it already but the read table still shows the campaign: the batch
-- that says so may have expired in tables that were given up long ago. And a rollback folds what the previous generation had in quarantine: the
-- fold that left it out counts its batches as folded.
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
            (SELECT campaign_id FROM ${live}.campaign_ledger FINAL WHERE NOT is_public AND ${scope})
        UNION ALL
        SELECT campaign_id FROM ${ledger}.quarantine FINAL WHERE is_quarantined AND ${scope}
    )
)
WHERE touched_campaigns != []
SETTINGS async_insert = 0
