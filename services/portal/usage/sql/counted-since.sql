-- Since when the counts are complete: no answer to a key after this moment is missing, except for the last minute. So a key
-- that was issued later and has no counts was never used. One row; `runs` is 0 if nothing was counted yet.
--
-- Counts can be missing
-- - from before the first process that counts (counts_from);
-- - where a process had to drop a count (lost_at);
-- - where a process was killed: from complete_until to its death. It had an hour at most, or until a process started that
--   was the only one. A run whose row is old and does not say that it ended counts as killed.

WITH (SELECT maxIf(started_at, is_only) FROM ${model}.usage_runs FINAL) AS alone_at
SELECT
    count() AS runs,
    toUnixTimestamp64Milli(greatest(
        min(counts_from),
        max(lost_at),
        maxIf(
            if(started_at < alone_at, least(complete_until + INTERVAL 1 HOUR, alone_at), complete_until + INTERVAL 1 HOUR),
            NOT is_ended AND complete_until < fromUnixTimestamp64Milli({alive_from:Int64}, 'UTC')
        )
    )) AS counted_since
FROM ${model}.usage_runs FINAL
SETTINGS max_execution_time = 5
