-- Runs while a promotion holds the fold. It marks each campaign that the new generation does not show. If the current generation shows it,
-- the mark has the present time, so that pollers see the removal. If it left earlier, the mark keeps that time, so that no removal is lost.
-- A removal that only the new generation knows is not marked: no reader has seen the campaign.
INSERT INTO ${read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted, was_public)
WITH
    live.is_shown OR live.was_public AS is_removal,
    multiIf(live.is_shown, greatest(${live_stamp}, live.updated_at + toIntervalMillisecond(1)), live.was_public, live.updated_at, rebuilt.updated_at)
        AS left_at
SELECT campaign_id, toFixedString('', 16), left_at, {fold_id:UInt64}, 1, is_removal
FROM
(
    SELECT
        campaign_id,
        argMaxIf(row, fold_id, is_live)::Tuple(is_shown UInt8, was_public UInt8, updated_at DateTime64(3, 'UTC')) AS live,
        argMaxIf(row, fold_id, NOT is_live)::Tuple(is_shown UInt8, was_public UInt8, updated_at DateTime64(3, 'UTC')) AS rebuilt
    FROM
    (
        SELECT campaign_id, (is_deleted = 0, was_public, updated_at) AS row, fold_id, true AS is_live FROM ${live}.campaigns WHERE ${scope}
        UNION ALL
        SELECT campaign_id, (is_deleted = 0, was_public, updated_at), fold_id, false FROM ${read}.campaigns WHERE ${scope}
    )
    GROUP BY campaign_id
)
WHERE NOT rebuilt.is_shown AND (live.is_shown OR is_removal != rebuilt.was_public OR (is_removal AND left_at != rebuilt.updated_at))
    AND ${fence} AND ${clock_fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
