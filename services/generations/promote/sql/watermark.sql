-- The watermark of a new generation begins where that of the current one stands. So no watermark that a list shows goes back.
INSERT INTO ${read}.watermarks (shard, reached)
SELECT shard, max(reached) FROM ${live}.watermarks WHERE ${fence} GROUP BY shard
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
