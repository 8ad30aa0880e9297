-- Records how far the history is written. A new leader goes on from there; the views say that earlier days are final.
INSERT INTO ${base}.history_marks (shard, noted, derived, begun)
SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'), fromUnixTimestamp64Milli({noted:Int64}, 'UTC'),
    fromUnixTimestamp64Milli({derived:Int64}, 'UTC'), toDate({begun:UInt16})
WHERE ${fence}
SETTINGS async_insert = 0
