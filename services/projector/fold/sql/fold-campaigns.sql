-- Recomputes the read rows of the touched campaigns from the ledger, and writes those that changed.
--
-- One statement, one stamp: ClickHouse's clock when the statement starts, but never below the watermark. Each new row is compared with the current
-- row of the read table by content_hash. So a campaign whose visible content did not change keeps its updated_at, and a
-- fold that changes nothing writes nothing. The creator's id is counted but never shown: if only the id changed, the row
-- is written with its old stamp. The last conditions are the fences: a superseded fold worker writes nothing,
-- and the statement fails if the clock leapt far ahead.
--
-- After a restore, every campaign whose events are read again gets a new stamp (or a mark), even if its content did not change: a poller may
-- have seen changes that the backup does not have.
--
-- A generation that is being built takes the stamps of the current one for rows with the same content.
--
-- The touched campaigns are those of the batches since the last fold, or a piece of them if all would take too long. A
-- piece is a range of ids, because the ledgers are sorted by id: each piece then reads only its part of the pledges. A
-- piece by hash would find its campaigns everywhere in the ledgers, and would read nearly all of them.
--
-- The bound on memory protects the server, which also answers readers. A piece that exceeds it is split, as if it were late.
INSERT INTO ${read}.campaigns (${columns}, creator_id, content_hash, updated_at, fold_id, is_deleted, was_public)
WITH
    -- The campaigns of the piece, found once. If each place that needs them had the query, this statement would take half as long again to
    -- plan, and planning is most of the work of a small fold. Each place unfolds the array: IN would search an array from its start for each row.
    (${touched}) AS touched,
    -- Sums are 128 bits wide: ten million pledges of 2^63-1 still fit. uniqExactArray counts a backer once. Pledges of hidden
    -- campaigns are summed too: to leave them out, the statement would have to read the campaign ledger twice. A campaign
    -- that is published between the two reads would then appear without its pledges.
    --
    -- Pledges are first added up by tier. That costs much less than a map from tiers to numbers, which would have to be
    -- looked up for each pledge. Backers are only collected there, because one can have several tiers.
    totals AS
    (
        SELECT
            campaign_id,
            sum(of_tier.pledged_minor) AS pledged_minor,
            sum(of_tier.pledged_platform_minor) AS pledged_platform_minor,
            uniqExactArray(of_tier.backers) AS backer_count,
            sum(of_tier.pledges) AS pledge_count,
            (groupArray(of_tier.reward_id), groupArray(of_tier.pledges)) AS claimed
        FROM
        (
            SELECT
                campaign_id,
                reward_id,
                sum(toInt128(amount_minor)) AS pledged_minor,
                sum(toInt128(platform_amount_minor)) AS pledged_platform_minor,
                groupArray(backer_hash) AS backers,
                count() AS pledges
            FROM ${ledger}.pledge_ledger FINAL
            PREWHERE campaign_id IN (SELECT arrayJoin(touched))
            WHERE counts
            GROUP BY campaign_id, reward_id
        ) AS of_tier
        GROUP BY campaign_id
    ),
    -- The latest row of each campaign. It may be that of a removal, which FINAL would leave out: what comes back needs a later stamp.
    standing AS
    (
        SELECT campaign_id, creator_id, content_hash, updated_at, NOT is_deleted AS stands, was_public
        FROM ${read}.campaigns
        WHERE campaign_id IN (SELECT arrayJoin(touched))
        ORDER BY campaign_id, fold_id DESC
        LIMIT 1 BY campaign_id
    ),
    fresh AS
    (
        SELECT
            -- The columns that are copied as they are (contracts/tables/campaign-columns.ts).
            ${copied_columns},
            ledger.creator_id AS creator_id,
            NOT ledger.is_public AS is_deleted,
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
            -- How many pledges claimed each tier, in the order of the tiers. arrayEnumerateDense numbers equal ids equally, in
            -- the order in which they first appear: a tier gets its own place, and so does a claim of this tier. Claims of
            -- unknown tiers follow. (sumMap would leave out tiers without claims.) A lookup of each tier in the claims would cost
            -- tiers times claims.
            arrayResize(arrayReduce('maxMap',
                [arrayEnumerateDense(arrayConcat(ledger.rewards.reward_id, totals.claimed.1))],
                [arrayConcat(arrayResize([0::UInt64], length(ledger.rewards)), totals.claimed.2)]
            ).2, length(ledger.rewards)) AS claimed_by_tier,
            arrayMap((reward, claimed) -> (
                reward.reward_id,
                reward.title,
                reward.description,
                toDecimal128(reward.amount_minor, 4) / minor_units,
                CAST(reward.quantity_available AS Nullable(UInt64)),
                claimed,
                -- greatest() alone would turn null (unlimited) into 0.
                CAST(if(isNull(reward.quantity_available), NULL, greatest(toInt128(reward.quantity_available)
                    - claimed, 0)) AS Nullable(UInt64))
            ), ledger.rewards, claimed_by_tier) AS rewards
        FROM
        (
            -- All versions of a campaign have its id, so PREWHERE drops none of them alone.
            SELECT * FROM ${ledger}.campaign_ledger FINAL
            PREWHERE campaign_id IN (SELECT arrayJoin(touched))
        ) AS ledger
        -- The history reads the rows of hidden campaigns, too, and counts on it that they have no sums (note-days.sql).
        LEFT JOIN totals ON totals.campaign_id = ledger.campaign_id AND ledger.is_public
    )
SELECT
    ${fresh_columns},
    fresh.creator_id,
    sipHash128((${fresh_columns})) AS new_hash,
    multiIf(standing.stands AND standing.content_hash = new_hash AND NOT (${is_again}), standing.updated_at, ${kept_stamp}
        -- Two states of a campaign never have the same stamp, not even if the clock stands behind the watermark.
        greatest(${stamp}, standing.updated_at + toIntervalMillisecond(1))),
    {fold_id:UInt64},
    fresh.is_deleted,
    fresh.is_deleted AND (standing.stands OR standing.was_public)
FROM fresh
LEFT JOIN standing ON standing.campaign_id = fresh.campaign_id
${kept}
${again}
WHERE (${is_again} OR if(fresh.is_deleted, standing.stands, NOT standing.stands
        OR standing.content_hash != new_hash OR standing.creator_id != fresh.creator_id))
    AND ${fence} AND ${clock_fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0, join_use_nulls = 0
