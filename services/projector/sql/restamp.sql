-- Stamps anew the rows of folds that nobody saw end in time: their changes may have become visible later than their
-- updated_at promises, so a poller may have passed them. Their content stays.
--
-- Which campaigns these are is looked up without FINAL first: that reads two columns, and FINAL then reads their
-- granules alone. Else every take-over would read the whole table, and a large one would never end in time.
--
-- A piece is a range of the ids' hashes, which stays the same while pieces are stamped: a range of the ids that are in
-- doubt would move as rows leave it.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
SELECT ${columns}, creator_id, content_hash, now64(3, 'UTC'), {fold_id:UInt64}, is_deleted
FROM ${model}.campaigns AS standing FINAL
WHERE campaign_id IN
    (
        SELECT campaign_id FROM ${model}.campaigns
        WHERE fold_id > {after:UInt64} AND fold_id < {before:UInt64}
            AND bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
    )
    AND standing.fold_id > {after:UInt64} AND standing.fold_id < {before:UInt64}
    AND ${holds}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
