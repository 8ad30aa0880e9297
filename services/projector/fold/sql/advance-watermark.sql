-- Writes the watermark: everything stamped so far is visible, and no later stamp is earlier than this moment. It runs between
-- the statements of the fold, never beside one. It has their fence: a superseded fold worker promises nothing. The leader says the
-- moment, and not the server's clock, because it has to be remembered before it is written (watermark.ts).
INSERT INTO ${read}.watermarks (shard, reached)
SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'),
    fromUnixTimestamp64Milli({reached:Int64}, 'UTC')
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
