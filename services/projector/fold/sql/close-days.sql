-- Copies the rows that changed since the last close into the history, each under the UTC day of its stamp. It runs while the
-- fold stands still, before the first stamp of the next day, so each row is as it was shown at the end of its day.
--
-- The rows are those whose stamp is not the one that was closed last, also if it is older. So what a promotion, a rollback or a
-- restored backup changed without a stamp of these days is noted too: under the last day that is closed here.
--
-- Repeating it gives the same rows, which replace each other. The history has no rows of deleted campaigns.
-- A piece is a range of the ids' hashes. Every source is cut to it, so that a piece costs only its share.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded,
    backer_count, pledge_count, follower_count, updated_at, was_public, is_opening, previous_category,
    previous_platform_amount, previous_backer_count, previous_pledge_count)
WITH
    fromUnixTimestamp64Milli({closed:Int64}, 'UTC') AS closed,
    fromUnixTimestamp64Milli({until:Int64}, 'UTC') AS until,
    latest AS
    (
        SELECT
            campaign_id, true AS is_known, is_deleted = 0 AS is_public, category, pledged_platform_amount, backer_count,
            pledge_count, updated_at
        FROM ${base}.history_latest FINAL
        WHERE bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
    ),
    standing AS
    (
        SELECT
            campaign_id, if(updated_at < closed, toDate(until) - 1, toDate(updated_at)) AS day, 0 AS is_deleted, status,
            category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count, pledge_count,
            follower_count, updated_at, launch_date
        FROM ${read}.campaigns FINAL
        WHERE bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
            AND updated_at < until
            AND (campaign_id, updated_at) NOT IN (SELECT campaign_id, updated_at FROM latest WHERE is_public)
        UNION ALL
        -- Campaigns that are no longer public. Their last row says when they went, if a rebuild has not removed it.
        SELECT
            campaign_id, toDate(greatest(max(stamp), closed)) AS day, 1, '', '', '', 0, 0, 0, 0, 0, 0,
            greatest(max(stamp), closed), NULL
        FROM
        (
            SELECT campaign_id, updated_at AS stamp FROM latest WHERE is_public
            UNION ALL
            SELECT campaign_id, updated_at FROM ${read}.campaigns
            WHERE is_deleted = 1 AND campaign_id IN (SELECT campaign_id FROM latest WHERE is_public)
        )
        WHERE NOT (campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL
            WHERE bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}))
        GROUP BY campaign_id
        HAVING max(stamp) < until
    )
SELECT
    standing.campaign_id, standing.day, standing.is_deleted, standing.status, standing.category, standing.currency,
    standing.pledged_amount, standing.pledged_platform_amount, standing.percent_funded, standing.backer_count,
    standing.pledge_count, standing.follower_count, standing.updated_at,
    latest.is_public,
    -- A campaign that was launched on this day or the day before is new: its first fold may come after midnight.
    NOT latest.is_public AND (latest.is_known OR NOT ifNull(toDate(standing.launch_date) >= standing.day - 1, false)),
    if(latest.is_public, latest.category, ''),
    if(latest.is_public, latest.pledged_platform_amount, 0),
    if(latest.is_public, latest.backer_count, 0),
    if(latest.is_public, latest.pledge_count, 0)
FROM standing
LEFT JOIN latest ON latest.campaign_id = standing.campaign_id
WHERE NOT (standing.campaign_id IN
        (SELECT campaign_id FROM ${ledger}.campaign_ledger WHERE version = 18446744073709551615))
    AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0, join_use_nulls = 0
