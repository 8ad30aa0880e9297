-- The entities of a live ledger of which the new ledger has an older version or nothing. One with the same version is left out: the
-- history may have read it by a newer rule.
SELECT
    ${key}, maxIf(version, is_live) AS live_version, maxIf(version, NOT is_live) AS rebuilt_version,
    countIf(NOT is_live) > 0 AS is_known, max(is_gone) AS is_withdrawn
FROM
(
    SELECT ${key}, version, ${withdrawn} AS is_gone, true AS is_live FROM ${live}.${ledger} FINAL WHERE ${live_scope}
    UNION ALL
    SELECT ${key}, version, false, false FROM ${rebuilt}.${ledger} WHERE ${rebuilt_scope}
)
GROUP BY ${key}
HAVING countIf(is_live) > 0 AND (NOT is_known OR live_version > rebuilt_version)
