-- Notes the rows of the last close as those with which the next close compares. It runs after the close is recorded, and again
-- if the fold worker died before it was recorded that this has ended: then it adds what is missing.
INSERT INTO ${base}.history_latest
SELECT * FROM ${base}.campaign_days FINAL
WHERE day >= toDate(fromUnixTimestamp64Milli({closed_from:Int64}, 'UTC'))
    AND day < toDate(fromUnixTimestamp64Milli({closed:Int64}, 'UTC'))
    AND bitShiftRight(toUInt128(cityHash64(campaign_id)) * {pieces:UInt32}, 64) = {piece:UInt32}
    AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0
