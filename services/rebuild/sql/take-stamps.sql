-- Takes over the stamps of other tables on the same log (take-stamps.ts). It runs in a fold pause, in pieces by ranges of the ids.
-- Each piece ends within the commit horizon. Only rows whose stamp changes are read as a whole.
--
-- A row with the same content gets the stamp that it has there. Every other row gets a stamp of this moment, unless its stamp is
-- one that no poller of the other tables has passed: `reached` is at or above their floor, and above all of their stamps. So two
-- contents of a campaign never have the same stamp, and the statement can be repeated.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
WITH moved AS
(
    SELECT row.campaign_id AS campaign_id, taken.hash = hex(row.content_hash) AS is_same, taken.stamp AS taken_stamp
    FROM
    (
        SELECT campaign_id, content_hash, updated_at FROM ${model}.campaigns FINAL
        WHERE campaign_id >= {first:String} AND (NOT {has_end:Bool} OR campaign_id < {next:String})
    ) AS row
    LEFT JOIN
    (
        SELECT campaign_id, hash, stamp FROM ${model}.${taken}
        WHERE campaign_id >= {first:String} AND (NOT {has_end:Bool} OR campaign_id < {next:String})
    ) AS taken ON taken.campaign_id = row.campaign_id
    WHERE if(is_same, toUnixTimestamp64Milli(row.updated_at) != taken.stamp,
        toUnixTimestamp64Milli(row.updated_at) < {reached:Int64})
)
SELECT
    ${row_columns}, row.creator_id, row.content_hash,
    if(moved.is_same, fromUnixTimestamp64Milli(moved.taken_stamp, 'UTC'), (${stamp} AS own_stamp)),
    {fold_id:UInt64}, 0
FROM
(
    SELECT * FROM ${model}.campaigns FINAL
    WHERE campaign_id >= {first:String} AND (NOT {has_end:Bool} OR campaign_id < {next:String})
        AND campaign_id IN (SELECT campaign_id FROM moved)
) AS row
INNER JOIN moved ON moved.campaign_id = row.campaign_id
WHERE ${fence} AND ${day_fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0, join_use_nulls = 0
