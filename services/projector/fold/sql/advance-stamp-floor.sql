-- Writes that everything stamped so far is visible or will be stamped again, and that no later stamp is earlier than this
-- moment. It runs between the statements of the fold, never beside one. It has their fence: a superseded fold worker
-- promises nothing.
INSERT INTO ${model}.stamp_floor (shard, reached)
SELECT (SELECT any(substitution) FROM system.macros WHERE macro = 'shard'),
    greatest(now64(3, 'UTC'), (SELECT max(reached) FROM ${model}.stamp_floor) + toIntervalMillisecond(1))
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
