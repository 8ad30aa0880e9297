-- The entities of a live ledger of which the new ledger has an older version or nothing.
--
-- The differing campaigns are computed once, as a scalar. As two subqueries they could differ, because the live projectors go
-- on inserting: then a campaign of the first only would look unknown to the rebuild.
WITH (SELECT groupUniqArray(${owner}) FROM (${differing})) AS differing
SELECT
    ${owner} AS campaign, toJSONString([${key}]) AS entity, is_withdrawn AS isWithdrawn, toString(live_version) AS liveVersion,
    if(is_known, toString(known_version), '-1') AS rebuiltVersion
FROM
(
    SELECT ${key}, version AS live_version, toUInt8(${withdrawn}) AS is_withdrawn
    FROM ${live}.${ledger} FINAL WHERE ${scope} AND ${owner} IN (SELECT arrayJoin(differing))
) AS live
LEFT JOIN
(
    SELECT ${key}, max(version) AS known_version, toUInt8(1) AS is_known
    FROM ${rebuilt}.${ledger} WHERE ${scope} AND ${owner} IN (SELECT arrayJoin(differing)) GROUP BY ${key}
) AS rebuilt USING (${key})
WHERE NOT is_known OR known_version < live.live_version
ORDER BY ${key}
LIMIT ${rows_max}
SETTINGS join_use_nulls = 0
