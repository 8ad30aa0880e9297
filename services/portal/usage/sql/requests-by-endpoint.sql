-- The kept requests of some keys by endpoint and status, and how long nineteen of twenty took at most.

SELECT
    splitByChar('?', path)[1] AS endpoint,
    status,
    count() AS requests,
    toUInt32(quantile(0.95)(ms)) AS p95_ms
FROM ${base}.api_key_requests FINAL
WHERE api_key IN {keys:Array(String)} AND at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
GROUP BY endpoint, status
ORDER BY endpoint, status
