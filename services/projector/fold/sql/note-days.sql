-- Copies the rows that changed since the last time into the history, each under the UTC day of its stamp. It runs before a row
-- of the next day can replace one of them (days.ts). So no row of a day is lost, whenever the day ends.
--
-- It reads the read table without FINAL: a row that is superseded is as it was shown, and the latest row of a day replaces the others. Of the
-- history it needs the last row of a stamp, which FINAL gives: derive-days.sql writes one again. The first time it
-- copies everything under the day on which the history begins. Repeating it gives the same rows. A campaign that is no longer public
-- gets a row if it was in the history before, and a deleted one gets none. Each row gets what the row before it had, of an earlier day.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count,
    pledge_count, follower_count, launched, updated_at, previous_source, previous_category, previous_platform_amount,
    previous_backer_count, previous_pledge_count, is_opening, complete_from)
WITH
    changed AS
    (
        SELECT campaign_id FROM ${read}.campaigns
        WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND ${piece}
    )
SELECT
    campaign_id, day, 'kept', is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count,
    pledge_count, follower_count, launched, updated_at,
    previous_source, previous_category, previous_platform_amount, previous_backer_count, previous_pledge_count,
    is_deleted = 0 AND previous_source = '' AND (was_shown OR NOT is_new), complete_from
FROM
(
    -- A row that is not public has neither amounts nor a category.
    SELECT
        *,
        ifNull(launched >= day - 1, false) AS is_new,
        lagInFrame(if(is_deleted = 0, source, '')) OVER own AS previous_source,
        lagInFrame(category) OVER own AS previous_category,
        lagInFrame(pledged_platform_amount) OVER own AS previous_platform_amount,
        lagInFrame(backer_count) OVER own AS previous_backer_count,
        lagInFrame(pledge_count) OVER own AS previous_pledge_count,
        max(is_deleted = 0) OVER (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS was_shown,
        min(multiIf(NOT is_changed, known_from, is_new, least(day, assumeNotNull(launched)), day)) OVER shown AS complete_from
    FROM
    (
        -- A campaign that is shown again begins anew: nobody saw when it was pledged to while it was hidden.
        SELECT
            *,
            sum(is_deleted) OVER (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS times_hidden
        FROM
        (
            SELECT *, max(NOT is_changed) OVER (PARTITION BY campaign_id) AS is_known
            FROM
            (
                SELECT
                    true AS is_changed, campaign_id, greatest(toDate(updated_at), toDate({begun:UInt16})) AS day, 'kept' AS source, is_deleted, status,
                    category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count, pledge_count, follower_count,
                    -- A Date has no other days: of such a launch, as of none, the history does not know when it was.
                    if(launch_date BETWEEN toDateTime64(0, 3, 'UTC') AND toDateTime64('2149-06-06', 3, 'UTC'), toDate(launch_date), NULL) AS launched,
                    updated_at, toDate(0) AS known_from
                FROM ${read}.campaigns
                WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND ${piece}
                    AND NOT (campaign_id IN
                        (
                            SELECT campaign_id FROM ${ledger}.campaign_ledger
                            WHERE campaign_id IN (SELECT campaign_id FROM changed) AND version = 18446744073709551615
                        ))
                UNION ALL
                SELECT
                    false, campaign_id, day, source, is_deleted, '', category, '', 0, pledged_platform_amount, 0, backer_count, pledge_count, 0,
                    NULL, updated_at, complete_from
                FROM ${base}.campaign_days FINAL
                PREWHERE campaign_id IN (SELECT campaign_id FROM changed)
            )
            -- The latest row of each day. One that was copied before is copied again.
            ORDER BY updated_at DESC, is_changed DESC
            LIMIT 1 BY campaign_id, day
        )
        WHERE NOT (source = 'derived' AND is_deleted)
    )
    WINDOW
        own AS (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
        shown AS (PARTITION BY campaign_id, times_hidden ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
WHERE is_changed AND (is_deleted = 0 OR is_known) AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0
