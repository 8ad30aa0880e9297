-- Takes over the stamps of other tables on the same log (take-stamps.ts). It runs in a fold pause, in pieces by the ids' hashes.
-- Each piece ends within the commit horizon.
--
-- A row with the same content gets the stamp that it has there. Every other row gets a stamp of this moment, unless its stamp is
-- one that no poller of the other tables has passed. So the statement can be repeated.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
SELECT
    ${row_columns}, row.creator_id, row.content_hash,
    if(taken.hash = hex(row.content_hash), fromUnixTimestamp64Milli(taken.stamp, 'UTC'), (${stamp} AS own_stamp)),
    {fold_id:UInt64}, 0
FROM
(
    SELECT * FROM ${model}.campaigns FINAL
    WHERE bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
) AS row
LEFT JOIN
(
    SELECT campaign_id, hash, stamp FROM ${taken}.stamps
    WHERE bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
) AS taken ON taken.campaign_id = row.campaign_id
WHERE if(taken.hash = hex(row.content_hash), toUnixTimestamp64Milli(row.updated_at) != taken.stamp,
        toUnixTimestamp64Milli(row.updated_at) < {reached:Int64})
    AND ${fence} AND ${day_fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0, join_use_nulls = 0
