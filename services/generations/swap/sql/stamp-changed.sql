-- Runs after a swap that changed many rows. Every row that differs from the previous tables gets a stamp of this moment. Rows
-- that were stamped since the swap are left alone, so the statement can be repeated.
-- It runs during a fold pause, in pieces by the ids' hashes.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
WITH changed AS
(
    SELECT rebuilt.campaign_id AS campaign_id
    FROM
    (
        SELECT campaign_id, content_hash FROM ${model}.campaigns FINAL
        WHERE updated_at < toDateTime64({swapped_at:String}, 3, 'UTC')
            AND bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
    ) AS rebuilt
    LEFT JOIN (SELECT campaign_id, content_hash, true AS stands FROM ${previous}.campaigns FINAL) AS previous
        ON previous.campaign_id = rebuilt.campaign_id
    WHERE NOT previous.stands OR previous.content_hash != rebuilt.content_hash
)
SELECT ${columns}, creator_id, content_hash, (${stamp} AS own_stamp), {fold_id:UInt64}, 0
FROM ${model}.campaigns FINAL
WHERE campaign_id IN (SELECT campaign_id FROM changed) AND ${fence} AND ${day_fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0, join_use_nulls = 0
