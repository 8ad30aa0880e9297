-- The counts of some keys by UTC day or hour. A request with a wrong secret does not use the key, so it is not the last use.
-- The rows of one key and minute are in one partition, so the partitions are read side by side.

SELECT
    api_key,
    formatDateTime(minute, {format:String}, 'UTC') AS day,
    sum(api_key_usage.ok) AS ok,
    sum(api_key_usage.not_modified) AS not_modified,
    sum(api_key_usage.unauthorized) AS unauthorized,
    sum(api_key_usage.too_many) AS too_many,
    sum(api_key_usage.other) AS other,
    sum(api_key_usage.deprecated) AS deprecated,
    toUnixTimestamp64Milli(maxIf(
        minute,
        api_key_usage.ok + api_key_usage.not_modified + api_key_usage.too_many + api_key_usage.other > 0
    )) AS last_used
FROM ${base}.api_key_usage FINAL
WHERE api_key IN {keys:Array(String)} AND minute >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
GROUP BY api_key, day
ORDER BY api_key, day
SETTINGS do_not_merge_across_partitions_select_final = 1
