-- The campaigns (or keys) whose rows differ between the live and the new ledger, by a hash of their keys and versions.
-- Usually there are none. Then nothing has to be joined row by row.
SELECT ${owner}
FROM
(
    SELECT ${owner}, sipHash64(${key}, version) AS hash, true AS is_live
    FROM ${live}.${ledger} FINAL WHERE ${rows} AND ${scope}
    UNION ALL
    SELECT ${owner}, sipHash64(${key}, version), false
    FROM ${rebuilt}.${ledger} FINAL WHERE ${rows} AND ${scope}
)
GROUP BY ${owner}
HAVING sumIf(hash, is_live) != sumIf(hash, NOT is_live)
