-- Compares the campaigns of other tables on the same log with these (staged-stamps.ts). A campaign that is withdrawn there (deleted
-- or hidden), but shown here or about to be, although nothing newer has come, must not be shown again: the log has lost its withdrawal.
-- A campaign is missing here if it is public there, and the ledger here has no event of it that is as new; or if it is shown
-- there, and not here, although no event as new withdraws it.
SELECT
    countIf(comes_back) AS withdrawn, groupArrayIf(${names_max})(id, comes_back) AS withdrawnIds,
    countIf(is_missing) AS missing, groupArrayIf(${names_max})(id, is_missing) AS missingIds
FROM
(
    SELECT
        there.id AS id,
        there.is_withdrawn AND (shown.is_shown OR here.is_public) AND here.version <= there.version AS comes_back,
        (
            NOT there.is_withdrawn AND (NOT here.is_known OR here.version < there.version)
            OR taken.is_taken AND NOT shown.is_shown AND NOT (here.is_known AND NOT here.is_public AND here.version >= there.version)
        ) AS is_missing
    FROM
    (
        SELECT id, version, is_withdrawn FROM ${staged}.${versions}
        WHERE ledger = 'campaign_ledger' AND cityHash64(id) % {slices:UInt32} = {slice:UInt32}
    ) AS there
    LEFT JOIN
    (
        SELECT campaign_id, version, is_public, true AS is_known FROM ${model}.campaign_ledger FINAL
        WHERE cityHash64(campaign_id) % {slices:UInt32} = {slice:UInt32}
    ) AS here ON here.campaign_id = there.id
    LEFT JOIN
    (
        SELECT campaign_id, true AS is_shown FROM ${model}.campaigns FINAL
        WHERE cityHash64(campaign_id) % {slices:UInt32} = {slice:UInt32}
    ) AS shown ON shown.campaign_id = there.id
    LEFT JOIN
    (
        SELECT campaign_id, true AS is_taken FROM ${staged}.${stamps}
        WHERE cityHash64(campaign_id) % {slices:UInt32} = {slice:UInt32}
    ) AS taken ON taken.campaign_id = there.id
    ORDER BY id
)
SETTINGS join_use_nulls = 0
