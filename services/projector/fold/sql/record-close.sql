-- Records up to when days are closed. From then on the views take these days from the history. As long as `closed_from` is
-- before `closed`, the rows of this close may be missing in history_latest.
INSERT INTO ${base}.history_closed (shard, closed_from, closed)
SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'),
    fromUnixTimestamp64Milli({closed_from:Int64}, 'UTC'), fromUnixTimestamp64Milli({closed:Int64}, 'UTC')
WHERE ${fence}
SETTINGS async_insert = 0
