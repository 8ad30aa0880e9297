-- The entities of a live ledger of which the new ledger has an older version or nothing. One with the same version is left out: the
-- history may have read it by a newer rule.
--
-- The campaigns that differ at all are found first, by a hash of keys and versions. Usually there are none. They are computed once, as a
-- scalar: the live projectors go on inserting, so two subqueries could differ.
WITH
(
    SELECT groupUniqArray(campaign_id)
    FROM
    (
        SELECT campaign_id
        FROM
        (
            SELECT campaign_id, sipHash64(${key}, version) AS hash, true AS is_live
            FROM ${live}.${ledger} FINAL WHERE ${rows} AND ${scope}
            UNION ALL
            SELECT campaign_id, sipHash64(${key}, version), false
            FROM ${rebuilt}.${ledger} FINAL WHERE ${rows} AND ${scope}
        )
        GROUP BY campaign_id
        HAVING sumIf(hash, is_live) != sumIf(hash, NOT is_live)
    )
) AS differing
SELECT
    ${key}, maxIf(version, is_live) AS live_version, maxIf(version, NOT is_live) AS rebuilt_version,
    countIf(NOT is_live) > 0 AS is_known, max(is_gone) AS is_withdrawn
FROM
(
    SELECT ${key}, version, ${withdrawn} AS is_gone, true AS is_live
    FROM ${live}.${ledger} FINAL WHERE ${rows} AND ${scope} AND campaign_id IN (SELECT arrayJoin(differing))
    UNION ALL
    SELECT ${key}, version, false, false
    FROM ${rebuilt}.${ledger} WHERE ${scope} AND campaign_id IN (SELECT arrayJoin(differing))
)
GROUP BY ${key}
HAVING countIf(is_live) > 0 AND (NOT is_known OR live_version > rebuilt_version)
