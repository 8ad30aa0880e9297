-- Stamps anew the rows of folds that nobody saw end in time: their changes may have become visible later than their
-- updated_at promises, so a poller may have passed them. Their content stays. Rows of campaigns that left the public are
-- stamped too, which FINAL would hide: whoever follows departures by their stamps (campaign_changes) misses none either.
--
-- Which campaigns these are is looked up first, in two columns, and then their latest rows are read by their ids. Else
-- every take-over would read the whole table, and a large one would never end in time.
--
-- A piece is a range of the ids' hashes, which stays the same while pieces are stamped: a range of the ids that are in
-- doubt would move as rows leave it.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
SELECT ${columns}, creator_id, content_hash, now64(3, 'UTC'), {fold_id:UInt64}, is_deleted
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
    AND ${holds}
LIMIT 1 BY campaign_id
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
