-- Before the stamps of other tables are taken over: raises the stamp floor to theirs. So every later stamp is one that no poller
-- of the other tables has passed, however the clocks of the servers differ.
INSERT INTO ${model}.stamp_floor (shard, reached)
SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'),
    greatest((SELECT max(reached) FROM ${model}.stamp_floor), fromUnixTimestamp64Milli({reached:Int64}, 'UTC'))
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
