-- Shows a campaign that was folded alone: copies its staged row to the read table, if it differs from the current row.
--
-- Staging may take long, this statement does not. So it carries the stamp, under the same rules as every fold: it has half
-- of the commit horizon, and the fence. The campaign is in no other fold meanwhile.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
SELECT
    ${fresh_columns},
    fresh.creator_id,
    fresh.content_hash,
    if(standing.stands AND standing.content_hash = fresh.content_hash, standing.updated_at,
        -- Two states of a campaign never have the same stamp, not even if the clock stands behind the floor.
        greatest((${stamp} AS own_stamp), standing.updated_at + toIntervalMillisecond(1))),
    {fold_id:UInt64},
    fresh.is_deleted
FROM
(
    SELECT * FROM ${model}.staged_campaigns WHERE fold_id = {staged_id:UInt64}
) AS fresh
LEFT JOIN
(
    SELECT campaign_id, creator_id, content_hash, updated_at, true AS stands
    FROM ${model}.campaigns FINAL
    WHERE campaign_id = {campaign:String}
) AS standing ON standing.campaign_id = fresh.campaign_id
WHERE if(fresh.is_deleted, standing.stands, NOT standing.stands
        OR standing.content_hash != fresh.content_hash OR standing.creator_id != fresh.creator_id)
    AND ${fence} AND ${day_fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0, join_use_nulls = 0
