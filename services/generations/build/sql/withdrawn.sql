-- The rows of a live ledger that are withdrawn (deleted, hidden, cancelled, revoked, or with a time at which they will be), if
-- the new ledger does not have this version or a newer one. A row with the same version is left out: the history may have
-- read it by a newer rule.
-- The differing campaigns are computed once, as a scalar (see missing.sql).
WITH (SELECT groupUniqArray(${owner}) FROM (${differing})) AS differing
SELECT ${columns}
FROM
(
    SELECT ${columns} FROM ${live}.${ledger} FINAL
    WHERE ${withdrawn} AND ${scope} AND ${owner} IN (SELECT arrayJoin(differing))
) AS withdrawn
LEFT JOIN
(
    SELECT ${key}, max(version) AS known_version, true AS is_known
    FROM ${rebuilt}.${ledger} WHERE ${scope} AND ${owner} IN (SELECT arrayJoin(differing)) GROUP BY ${key}
) AS rebuilt USING (${key})
WHERE NOT is_known OR version > known_version
