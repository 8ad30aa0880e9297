-- The same as compare-campaigns.sql for API keys: a key that is revoked in the other tables must not be valid again.
SELECT
    countIf(comes_back) AS withdrawn, groupArrayIf(${names_max})(concat('API key ', id), comes_back) AS withdrawnIds,
    countIf(is_missing) AS missing, groupArrayIf(${names_max})(concat('API key ', id), is_missing) AS missingIds
FROM
(
    SELECT
        there.id AS id,
        there.is_withdrawn AND here.is_valid AND here.version <= there.version AS comes_back,
        NOT there.is_withdrawn AND (NOT here.is_known OR here.version < there.version) AS is_missing
    FROM
    (
        SELECT id, version, is_withdrawn FROM ${staged}.${versions}
        WHERE ledger = 'api_key_ledger' AND cityHash64(id) % {slices:UInt32} = {slice:UInt32}
    ) AS there
    LEFT JOIN
    (
        SELECT api_key, version, is_unrevoked AND expires_at IS NULL AS is_valid, true AS is_known
        FROM ${model}.api_key_ledger FINAL
    ) AS here ON here.api_key = there.id
    ORDER BY id
)
SETTINGS join_use_nulls = 0
