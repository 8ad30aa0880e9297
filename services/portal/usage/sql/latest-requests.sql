-- The latest requests of some keys. The ids and the paths come from rows that query processes may have written twice.

SELECT
    api_key,
    toUnixTimestamp64Milli(at) AS answered_at,
    request_id,
    path,
    status,
    ms
FROM ${base}.api_key_requests FINAL
WHERE api_key IN {keys:Array(String)} AND at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND startsWith(request_id, {id:String})
ORDER BY at DESC
LIMIT {most:UInt32}
