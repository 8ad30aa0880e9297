-- Gives a new stamp to the rows of folds that were not seen to end in time. Their changes may have become visible later
-- than their updated_at promises, so a poller may have missed them. The content stays the same. Rows of campaigns that are
-- no longer public get a new stamp too. FINAL would hide them, but pollers that follow departures (campaign_changes) must
-- not miss one.
--
-- The inner query reads two columns to find the campaigns. Then their latest rows are read by id. Otherwise every change of
-- leadership would read the whole table, and would never end in time on a large one.
--
-- A piece is a range of the ids' hashes, because that range does not change while pieces are stamped. A range of the ids in
-- doubt would shift as rows leave it.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
SELECT ${columns}, creator_id, content_hash, greatest((${stamp} AS own_stamp), standing.updated_at + toIntervalMillisecond(1)), {fold_id:UInt64}, is_deleted
FROM ${model}.campaigns AS standing
WHERE (campaign_id, standing.fold_id) IN
    (
        SELECT campaign_id, max(fold_id) FROM ${model}.campaigns
        WHERE campaign_id IN
            (
                SELECT campaign_id FROM ${model}.campaigns
                WHERE fold_id > {after:UInt64} AND fold_id < {before:UInt64}
                    AND bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
            )
        GROUP BY campaign_id
    )
    AND standing.fold_id > {after:UInt64} AND standing.fold_id < {before:UInt64}
    AND ${fence} AND ${day_fence}
LIMIT 1 BY campaign_id
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0
