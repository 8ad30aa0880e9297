-- Derives the days before the first one of the history, from the pledges that count now: each counts from its own day on. Nobody kept what
-- was shown on these days. So pledges that were cancelled since are missing, and a pledge that changed stands on the day of its change.
--
-- Only campaigns that are public, that were shown on the first day, and that are older than it, get such days: from the launch to the end,
-- or to the day before the first one. A pledge whose state changed after the day of the end (as when it is collected) counts from that day on.
-- Only the day of a change is known. If a pledge was collected on the day of the end, nothing tells that it was made earlier.
-- They are in the category of the first day. The views show them only while the campaign is public.
-- The pledges may be ahead of the row. If more of them were here than the row has, the first day would take something back. Such a campaign
-- waits: the next fold gives it a row with a later stamp, and the next derivation looks at it again.
--
-- It can be repeated: days of an earlier time are written again, so that none is left over. The first kept row is written again with what the
-- last derived day has (../../../../contracts/tables/0003-days.sql).
--
-- A piece is a range of ids, as in fold-campaigns.sql. Each table is read once.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count,
    pledge_count, follower_count, launched, updated_at, previous_source, previous_category, previous_platform_amount,
    previous_backer_count, previous_pledge_count, is_opening, complete_from)
WITH
    toDate({begun:UInt16}) AS begun,
    kept AS
    (
        SELECT
            campaign_id, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count, pledge_count,
            follower_count, assumeNotNull(launched) AS launch_day, updated_at
        FROM ${base}.campaign_days FINAL
        WHERE day = begun AND source = 'kept' AND is_deleted = 0 AND ifNull(launched < begun - 1, false)
            AND updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    ),
    -- First and last id of the piece. For an empty piece, the first is higher than the last.
    (
        SELECT (ids[intDiv(length(ids) * {piece:UInt32}, {pieces:UInt32}) + 1],
            ids[intDiv(length(ids) * ({piece:UInt32} + 1), {pieces:UInt32})])
        FROM (SELECT arraySort(groupArray(campaign_id)) AS ids FROM kept)
    ) AS bounds
SELECT
    campaign_id, day, if(is_kept, 'kept', 'derived'), 0, if(is_kept OR day >= ended, status, 'LIVE'), category, currency,
    if(is_kept, pledged_amount, toDecimal128(minor, 4) / [1, 10, 100, 1000, 10000][currency_digits + 1]),
    if(is_kept, pledged_platform_amount, platform / platform_unit),
    -- As in fold-campaigns.sql.
    multiIf(
        is_kept, percent_funded,
        goal_amount_minor = 0, toDecimal128(0, 2),
        toDecimal128(intDiv(toInt256(minor) * 20000 + goal_amount_minor, 2 * toInt256(goal_amount_minor)), 2) / 100),
    if(is_kept, backer_count, backers), if(is_kept, pledge_count, pledges), if(is_kept, follower_count, 0), launch_day, updated_at,
    if(place = 1, '', 'derived'), if(place = 1, '', category), previous_platform / platform_unit, previous_backers, previous_pledges, false,
    if(is_moved, begun, launch_day)
FROM
(
    SELECT
        kept.campaign_id AS campaign_id, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count,
        pledge_count, follower_count, launch_day, updated_at, currency_digits, goal_amount_minor,
        [1, 10, 100, 1000, 10000][{platform_digits:UInt8} + 1] AS platform_unit,
        greatest(launch_day, least(last, begun)) AS ended,
        arrayMap(known -> greatest(launch_day, least(known.1, ended)), of_pledges.known) AS days,
        arrayExists(known -> known.1 < launch_day OR known.1 > last, of_pledges.known) AS is_moved,
        -- The day that is kept is the last one: it gets what the row before it has.
        arraySort(arrayFilter(day -> day <= begun, arrayDistinct(arrayConcat([launch_day, ended, begun], days, earlier.days)))) AS all_days,
        arrayJoin(arrayEnumerate(all_days)) AS place,
        all_days[place] AS day,
        day = begun AS is_kept,
        if(place = 1, 0, arrayLastIndex(known -> known <= all_days[place - 1], days)) AS until_before,
        arraySlice(of_pledges.known, 1, arrayLastIndex(known -> known <= day, days)) AS until,
        arraySlice(of_pledges.known, 1, until_before) AS before,
        arraySum(known -> known.2, until) AS minor,
        toDecimal128(arraySum(known -> known.3, until), 4) AS platform,
        arraySum(known -> known.4, until) AS pledges,
        arraySum(known -> known.5, until) AS backers,
        toDecimal128(arraySum(known -> known.3, before), 4) AS previous_platform,
        arraySum(known -> known.4, before) AS previous_pledges,
        arraySum(known -> known.5, before) AS previous_backers,
        arraySlice(of_pledges.known, 1, arrayLastIndex(day -> day < begun, days)) AS of_derived
    FROM (SELECT * FROM kept WHERE campaign_id BETWEEN bounds.1 AND bounds.2) AS kept
    INNER JOIN
    (
        SELECT campaign_id, goal_amount_minor, currency_digits, if(end_date < toDateTime64('2149-06-06', 3, 'UTC'), toDate(end_date), toDate(65535)) AS last
        FROM ${ledger}.campaign_ledger FINAL WHERE campaign_id BETWEEN bounds.1 AND bounds.2 AND is_public
    ) AS known ON known.campaign_id = kept.campaign_id
    LEFT JOIN
    (
        -- Of each day: its pledges, and the backers whose first day it is.
        SELECT campaign_id, arraySort(groupArray((day, minor, platform, pledges, backers))) AS known
        FROM
        (
            SELECT campaign_id, own.1 AS day, sum(own.2) AS minor, sum(own.3) AS platform, sum(own.4) AS pledges, sum(own.5) AS backers
            FROM
            (
                SELECT campaign_id, backer_hash, arrayJoin(arrayConcat(
                    groupArray((pledged_on, toInt128(amount_minor), toInt128(platform_amount_minor), 1, 0)),
                    [(min(pledged_on), toInt128(0), toInt128(0), 0, 1)])) AS own
                FROM ${ledger}.pledge_ledger FINAL
                PREWHERE campaign_id BETWEEN bounds.1 AND bounds.2 AND campaign_id IN (SELECT campaign_id FROM kept)
                WHERE counts
                GROUP BY campaign_id, backer_hash
            )
            GROUP BY campaign_id, day
        )
        GROUP BY campaign_id
    ) AS of_pledges ON of_pledges.campaign_id = kept.campaign_id
    LEFT JOIN
    (
        SELECT campaign_id, groupUniqArray(day) AS days FROM ${base}.campaign_days
        WHERE source = 'derived' AND campaign_id BETWEEN bounds.1 AND bounds.2
        GROUP BY campaign_id
    ) AS earlier ON earlier.campaign_id = kept.campaign_id
    WHERE toDecimal128(arraySum(known -> known.3, of_derived), 4) / platform_unit <= pledged_platform_amount
        AND arraySum(known -> known.4, of_derived) <= pledge_count AND arraySum(known -> known.5, of_derived) <= backer_count
)
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0, join_use_nulls = 0
