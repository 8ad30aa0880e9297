-- Runs while a promotion holds the fold of the current generation. A row of the new one with the same content takes over its stamp. Every
-- other row gets a stamp of this moment, which no poller has passed: not below the watermark, and above the stamp that the campaign had.
-- While a restored generation still has to be read again, no row counts as the same (promote.ts). Only rows with another stamp are written.
-- It can be repeated: a new attempt stamps anew.
INSERT INTO ${read}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
WITH
    ${live_stamp} AS own_stamp,
    moved AS
    (
        SELECT
            rebuilt.campaign_id AS campaign_id,
            live.stands AND live.content_hash = rebuilt.content_hash AND NOT ${is_restored} AS is_same,
            live.updated_at AS live_stamp
        FROM (SELECT campaign_id, content_hash, updated_at FROM ${read}.campaigns FINAL WHERE ${scope}) AS rebuilt
        LEFT JOIN
        (
            -- Its latest row, which may be that of a removal.
            SELECT campaign_id, content_hash, updated_at, NOT is_deleted AS stands
            FROM ${live}.campaigns WHERE ${scope}
            ORDER BY campaign_id, fold_id DESC
            LIMIT 1 BY campaign_id
        ) AS live ON live.campaign_id = rebuilt.campaign_id
        WHERE NOT is_same OR live.updated_at != rebuilt.updated_at
    )
SELECT
    ${row_columns}, row.creator_id, row.content_hash,
    if(moved.is_same, moved.live_stamp, greatest(own_stamp, moved.live_stamp + toIntervalMillisecond(1))), {fold_id:UInt64}, 0
FROM (SELECT * FROM ${read}.campaigns FINAL WHERE campaign_id IN (SELECT campaign_id FROM moved)) AS row
INNER JOIN moved ON moved.campaign_id = row.campaign_id
WHERE ${fence} AND ${clock_fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0, join_use_nulls = 0
