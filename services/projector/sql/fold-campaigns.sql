-- Recomputes the read rows of the touched campaigns from the ledger, and writes those that came out different.
--
-- One statement, one stamp: now64 is evaluated once, when the statement starts. The row that stands in the read table
-- is compared by content_hash, so a campaign whose visible content did not change keeps its updated_at, and a fold
-- that changes nothing writes nothing. Only the creator's id is counted and never shown: where it alone changed, the
-- row is written under its old stamp. The last condition is the fence: a folder that another has superseded writes
-- nothing either.
--
-- Beside a live model, the fold of another generation keeps the stamps of the rows that are live with the same content.
--
-- Touched are the campaigns of the batches since the last fold, or a share of them where all would take too long. A
-- share is a range of ids, because the ledgers lie in that order: a piece then reads its part of the pledges, where a
-- piece by hash would find its campaigns all over them and read nearly all.
INSERT INTO ${model}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted)
WITH
    -- First and last id of the piece; an empty piece has them the wrong way round.
    (
        SELECT (ids[intDiv(length(ids) * {piece:UInt32}, {pieces:UInt32}) + 1],
            ids[intDiv(length(ids) * ({piece:UInt32} + 1), {pieces:UInt32})])
        FROM (SELECT arraySort(groupArray(campaign_id)) AS ids FROM (${touched}))
    ) AS bounds,
    touched AS
    (
        SELECT campaign_id FROM (${touched}) WHERE campaign_id BETWEEN bounds.1 AND bounds.2
    ),
    -- Sums are 128 bits wide: ten million pledges of 2^63-1 still fit. uniqExact counts a backer once. Pledges of hidden
    -- campaigns are summed too: to leave them out, the ledger would be read twice, and a campaign that is published
    -- between the two would show without its pledges.
    totals AS
    (
        SELECT
            campaign_id,
            sum(toInt128(amount_minor)) AS pledged_minor,
            sum(toInt128(platform_amount_minor)) AS pledged_platform_minor,
            uniqExact(backer_hash) AS backer_count,
            count() AS pledge_count,
            sumMap([reward_id], [toUInt64(1)]) AS claimed
        FROM ${model}.pledge_ledger FINAL
        WHERE counts AND campaign_id IN (SELECT campaign_id FROM touched)
        GROUP BY campaign_id
    ),
    standing AS
    (
        SELECT campaign_id, creator_id, content_hash, updated_at, true AS stands
        FROM ${model}.campaigns FINAL
        WHERE campaign_id IN (SELECT campaign_id FROM touched)
    ),
    fresh AS
    (
        SELECT
            ledger.campaign_id AS campaign_id,
            NOT ledger.is_public AS is_deleted,
            ledger.slug AS slug, ledger.url AS url, ledger.title AS title, ledger.subtitle AS subtitle,
            ledger.category AS category, ledger.subcategory AS subcategory, ledger.location AS location,
            ledger.image_url AS image_url, ledger.currency AS currency,
            [1, 10, 100, 1000, 10000][ledger.currency_digits + 1] AS minor_units,
            [1, 10, 100, 1000, 10000][{platform_digits:UInt8} + 1] AS platform_minor_units,
            toDecimal128(ledger.goal_amount_minor, 4) / minor_units AS goal_amount,
            toDecimal128(totals.pledged_minor, 4) / minor_units AS pledged_amount,
            toDecimal128(totals.pledged_platform_minor, 4) / platform_minor_units AS pledged_platform_amount,
            -- Exact: hundredths of a percent as an integer, rounded half up.
            if(ledger.goal_amount_minor = 0, toDecimal128(0, 2),
                toDecimal128(intDiv(toInt256(totals.pledged_minor) * 20000 + ledger.goal_amount_minor,
                    2 * toInt256(ledger.goal_amount_minor)), 2) / 100) AS percent_funded,
            totals.backer_count AS backer_count,
            totals.pledge_count AS pledge_count,
            toUInt64(ledger.follower_count) AS follower_count,
            ledger.status AS status, ledger.campaign_type AS campaign_type, ledger.project_type AS project_type,
            ledger.is_staff_pick AS is_staff_pick, ledger.has_adult_content AS has_adult_content,
            ledger.uses_ai AS uses_ai, ledger.tags AS tags, ledger.launch_date AS launch_date,
            ledger.end_date AS end_date, ledger.created_at AS created_at, ledger.creator_id AS creator_id,
            ledger.creator_name AS creator_name, ledger.creator_profile_url AS creator_profile_url,
            ledger.creator_avatar_url AS creator_avatar_url, ledger.description AS description, ledger.risks AS risks,
            arrayMap(reward -> (
                reward.reward_id,
                reward.title,
                reward.description,
                toDecimal128(reward.amount_minor, 4) / minor_units,
                CAST(reward.quantity_available AS Nullable(UInt64)),
                totals.claimed.2[indexOf(totals.claimed.1, reward.reward_id)],
                -- greatest alone would turn null (unlimited) into 0.
                CAST(if(isNull(reward.quantity_available), NULL, greatest(toInt128(reward.quantity_available)
                    - totals.claimed.2[indexOf(totals.claimed.1, reward.reward_id)], 0)) AS Nullable(UInt64))
            ), ledger.rewards) AS rewards
        FROM
        (
            SELECT * FROM ${model}.campaign_ledger FINAL
            WHERE campaign_id IN (SELECT campaign_id FROM touched)
        ) AS ledger
        LEFT JOIN totals ON totals.campaign_id = ledger.campaign_id
    )
SELECT
    ${fresh_columns},
    fresh.creator_id,
    sipHash128((${fresh_columns})) AS new_hash,
    multiIf(standing.stands AND standing.content_hash = new_hash, standing.updated_at, ${kept_stamp} now64(3, 'UTC')),
    {fold_id:UInt64},
    fresh.is_deleted
FROM fresh
LEFT JOIN standing ON standing.campaign_id = fresh.campaign_id
${kept}
WHERE if(fresh.is_deleted, standing.stands, NOT standing.stands
        OR standing.content_hash != new_hash OR standing.creator_id != fresh.creator_id)
    AND ${holds}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0, join_use_nulls = 0
