-- The history for data teams (see ../0003-history.sql and ../README.md, "History"). Of the LIMIT, see 0001-views.sql.

-- How far the history is. Private.
CREATE OR REPLACE VIEW ${base}.history_end
(
    noted Date COMMENT 'The day of the last moment up to which it is written on every shard, UTC: earlier days are final',
    today Date COMMENT 'The day of the last moment that the fold has confirmed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    toDate((SELECT min(reached) FROM (SELECT max(noted) AS reached FROM ${base}.history_marks GROUP BY shard))) AS noted,
    toDate((SELECT max(reached) FROM ${read}.watermarks)) AS today;

-- Each day with what the campaign had at the end of its day before. Private: it has campaigns that are hidden by now, but none that are
-- deleted. Derived days are here only while the campaign is public, in the category of its first kept day.
--
-- The windows are in the order of the table, so that nothing is sorted (optimize_read_in_window_order in ../roles/0003-analyst.sql). A
-- category is also here as a hash, because a window over text costs several times as much.
CREATE OR REPLACE VIEW ${base}.history_days
SQL SECURITY DEFINER
AS SELECT
    * EXCEPT category,
    if(source = 'kept', category, anyIf(category, source = 'kept' AND is_deleted = 0) OVER whole) AS shown_category,
    cityHash64(category)::UInt64 AS own_hash,
    anyIf(own_hash, source = 'kept' AND is_deleted = 0) OVER whole AS first_hash,
    if(source = 'kept', own_hash, first_hash) AS shown_hash,
    if(lagInFrame(source = 'derived') OVER until, first_hash, lagInFrame(own_hash) OVER until) AS previous_hash,
    day < (SELECT noted FROM ${base}.history_end) AS is_final,
    lagInFrame(is_deleted, 1, 1) OVER until = 0 AS was_public,
    -- Its amount was not pledged on this day: it is older than the history, or it was hidden.
    is_deleted = 0 AND NOT was_public AND (countIf(is_deleted = 0) OVER until > 1
        OR (source = 'kept' AND NOT ifNull(launched >= day - 1, false))) AS is_opening,
    -- 0 if it was not public.
    lagInFrame(pledged_platform_amount) OVER until AS previous_platform_amount,
    lagInFrame(backer_count) OVER until AS previous_backer_count,
    lagInFrame(pledge_count) OVER until AS previous_pledge_count,
    min(multiIf(NOT is_complete, toDate(65535), source = 'derived' OR ifNull(launched >= day - 1, false), least(day, ifNull(launched, day)), day))
        OVER whole AS complete_from
FROM ${base}.campaign_days FINAL
-- Nothing ranks after a tombstone, so no FINAL is needed to find them.
WHERE NOT (campaign_id IN (SELECT campaign_id FROM ${ledger}.campaign_ledger WHERE version = 18446744073709551615))
    AND if(source = 'kept', true, campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL))
WINDOW until AS (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
    whole AS (PARTITION BY campaign_id ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING);

CREATE OR REPLACE VIEW ${views}.campaign_days
(
    campaign_id             String COMMENT 'Campaign; only those that are public at present have rows',
    day                     Date COMMENT 'Day on which the campaign changed, UTC',
    status                  LowCardinality(String) COMMENT 'LIVE, FUNDED, FAILED or CANCELLED, at the end of the day',
    category                LowCardinality(String) COMMENT 'Main category at the end of the day',
    currency                LowCardinality(String) COMMENT 'ISO 4217 code of pledged_amount and pledged',
    pledged_amount          Decimal(38, 4) COMMENT 'Sum of the pledges that count at the end of the day, in major units of currency; exact',
    pledged                 Float64 COMMENT 'pledged_amount as a floating-point number, in major units of currency',
    pledged_platform_amount Decimal(38, 4) COMMENT 'The same sum in major units of the platform currency; exact',
    pledged_platform        Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency',
    percent_funded          Decimal(38, 2) COMMENT '100 * pledged_amount / goal, percent; exact',
    percent                 Float64 COMMENT 'percent_funded as a floating-point number, percent',
    backer_count            UInt64 COMMENT 'Distinct backers with a pledge that counts, at the end of the day',
    pledge_count            UInt64 COMMENT 'Pledges that count, at the end of the day',
    follower_count          Nullable(UInt64) COMMENT 'Followers at the end of the day; null if the day is derived',
    new_pledged_platform_amount Decimal(38, 4) COMMENT 'Change since the row before, below 0 after refunds, in major units of the platform currency; exact',
    new_pledged_platform    Float64 COMMENT 'new_pledged_platform_amount as a floating-point number, in major units of the platform currency',
    new_backer_count        Int64 COMMENT 'Change of the number of backers since the row before',
    new_pledge_count        Int64 COMMENT 'Change of the number of pledges since the row before',
    opening_platform_amount Decimal(38, 4) COMMENT 'What it already had when the history first showed it, or showed it again, in major units of the platform currency; exact',
    opening_platform        Float64 COMMENT 'opening_platform_amount as a floating-point number, in major units of the platform currency',
    is_final                Bool COMMENT 'False: the day is not over, and the row may still change',
    source                  LowCardinality(String) COMMENT 'kept: as it was shown at the end of the day. derived: the history did not exist yet; computed from the pledges that counted when it began, each from the day of its latest change on',
    complete_from           Date COMMENT 'From this day on, UTC, each pledge of the campaign stands on a day of its own; not after the launch if its whole life is here'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, day, status, shown_category AS category, currency, pledged_amount, toFloat64(pledged_amount) AS pledged,
    pledged_platform_amount, toFloat64(pledged_platform_amount) AS pledged_platform, percent_funded,
    toFloat64(percent_funded) AS percent, backer_count, pledge_count, if(source = 'kept', follower_count, NULL) AS follower_count,
    if(is_opening, 0, pledged_platform_amount - previous_platform_amount)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(is_opening, 0, toInt64(backer_count) - toInt64(previous_backer_count)) AS new_backer_count,
    if(is_opening, 0, toInt64(pledge_count) - toInt64(previous_pledge_count)) AS new_pledge_count,
    if(is_opening, pledged_platform_amount, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    is_final, source, complete_from
FROM ${base}.history_days
WHERE is_deleted = 0 AND campaign_id IN (SELECT campaign_id FROM ${read}.campaigns FINAL)
LIMIT 18446744073709551615
COMMENT 'Each public campaign at the end of each UTC day on which it changed, and what it gained on it. Days before the history began are derived';

-- What each row of the history adds to its day. A campaign that changes its category departs from one and opens the other:
-- these two entries are marked, because they are nothing for the whole platform. Private.
CREATE OR REPLACE VIEW ${base}.history_moves
(
    day        Date COMMENT 'Day, UTC',
    category   LowCardinality(String) COMMENT 'Main category',
    new_amount Decimal(38, 4) COMMENT 'Pledged on this day, in major units of the platform currency, like the next two amounts',
    new_pledges Int64 COMMENT 'Pledges of this day',
    opening    Decimal(38, 4) COMMENT 'What came with a campaign',
    departed   Decimal(38, 4) COMMENT 'What left with a campaign',
    campaigns  Int64 COMMENT 'Campaigns that came, less those that left',
    is_between Bool COMMENT 'From one category to another'
)
SQL SECURITY DEFINER
AS SELECT
    day, name AS category, move.2 AS new_amount, move.3 AS new_pledges, move.4 AS opening, move.5 AS departed,
    move.6 AS campaigns, move.7 AS is_between
FROM
(
    WITH toDecimal128(0, 4) AS none
    SELECT
        day,
        arrayJoin(arrayConcat(
            [(category_hash, new_amount, new_pledges, opening, departed, campaigns, false)],
            arrayMap(known -> (category_hash, none, toInt64(0), known.2, none, toInt64(1), true), moved),
            arrayMap(known -> (known.1, none, toInt64(0), none, known.2, toInt64(-1), true), moved))) AS move
    FROM
    (
        SELECT
            day,
            if(is_deleted, previous_hash, shown_hash) AS category_hash,
            sumIf(pledged_platform_amount - previous_platform_amount, is_deleted = 0 AND NOT is_opening) AS new_amount,
            sumIf(toInt64(pledge_count) - toInt64(previous_pledge_count), is_deleted = 0 AND NOT is_opening) AS new_pledges,
            sumIf(pledged_platform_amount, is_opening) AS opening,
            sumIf(previous_platform_amount, is_deleted) AS departed,
            countIf(is_deleted = 0) AS shown,
            countIf(was_public) AS shown_before,
            toInt64(shown) - toInt64(shown_before) AS campaigns,
            groupArrayIf((previous_hash, previous_platform_amount),
                is_deleted = 0 AND was_public AND shown_hash != previous_hash) AS moved
        FROM ${base}.history_days
        GROUP BY day, category_hash
        HAVING shown + shown_before > 0
    )
) AS sums
INNER JOIN (SELECT DISTINCT category AS name, cityHash64(category)::UInt64 AS name_hash FROM ${base}.campaign_days) AS names
    ON name_hash = move.1
LIMIT 18446744073709551615;

CREATE OR REPLACE VIEW ${views}.category_funding_days
(
    category                    LowCardinality(String) COMMENT 'Main category',
    day                         Date COMMENT 'Day, UTC; no day is missing from the first one of the category until today',
    new_pledged_platform_amount Decimal(38, 4) COMMENT 'Pledged on this day less refunds, in major units of the platform currency; exact',
    new_pledged_platform        Float64 COMMENT 'new_pledged_platform_amount as a floating-point number, in major units of the platform currency',
    new_pledge_count            Int64 COMMENT 'Change of the number of pledges on this day',
    opening_platform_amount     Decimal(38, 4) COMMENT 'What campaigns already had when the history first showed them, or showed them again, or when they came from another category, in major units of the platform currency; exact',
    opening_platform            Float64 COMMENT 'opening_platform_amount as a floating-point number, in major units of the platform currency',
    departed_platform_amount    Decimal(38, 4) COMMENT 'What went with campaigns that were no longer public, or that went to another category, in major units of the platform currency; exact',
    departed_platform           Float64 COMMENT 'departed_platform_amount as a floating-point number, in major units of the platform currency',
    pledged_platform_amount     Decimal(38, 4) COMMENT 'Of the public campaigns at the end of the day: the day before + new + opening - departed, in major units of the platform currency; exact',
    pledged_platform            Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency',
    campaigns                   UInt64 COMMENT 'Public campaigns at the end of the day'
)
SQL SECURITY DEFINER
AS SELECT
    category,
    known_day + gap AS day,
    if(gap = 0, new_amount, 0)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(gap = 0, new_pledges, 0)::Int64 AS new_pledge_count,
    if(gap = 0, opening, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    if(gap = 0, departed, 0)::Decimal(38, 4) AS departed_platform_amount,
    toFloat64(departed_platform_amount) AS departed_platform,
    standing AS pledged_platform_amount,
    toFloat64(standing) AS pledged_platform,
    toUInt64(standing_campaigns) AS campaigns
FROM
(
    -- Here, where it is used: on a cluster a query may say that no name of a WITH is known within (enable_global_with_statement).
    WITH (SELECT today FROM ${base}.history_end) AS today
    SELECT
        category, arraySort(groupArray((day, new_amount, new_pledges, opening, departed, campaigns))) AS known,
        known.1 AS days, known.2 AS amounts, known.3 AS pledges, known.4 AS openings, known.5 AS departures,
        arrayCumSum((a, o, d) -> a + o - d, amounts, openings, departures) AS sums,
        arrayCumSum(known.6) AS counts,
        -- The days until the next known one, or until today.
        arrayMap(n -> range(toUInt32(if(n < length(days), days[n + 1], greatest(days[n], today) + 1) - days[n])),
            arrayEnumerate(days)) AS gaps
    FROM
    (
        SELECT day, category, sum(new_amount) AS new_amount, sum(new_pledges) AS new_pledges, sum(opening) AS opening,
            sum(departed) AS departed, sum(campaigns) AS campaigns
        FROM ${base}.history_moves
        GROUP BY day, category
    )
    GROUP BY category
)
ARRAY JOIN
    days AS known_day, amounts AS new_amount, pledges AS new_pledges, openings AS opening, departures AS departed,
    sums AS standing, counts AS standing_campaigns, gaps AS own_gaps
ARRAY JOIN own_gaps AS gap
COMMENT 'What the public campaigns of each category gained on each UTC day';

CREATE OR REPLACE VIEW ${views}.funding_days
(
    day                         Date COMMENT 'Day, UTC; no day is missing from the first one of the history until today',
    new_pledged_platform_amount Decimal(38, 4) COMMENT 'Pledged on this day less refunds, in major units of the platform currency; exact',
    new_pledged_platform        Float64 COMMENT 'new_pledged_platform_amount as a floating-point number, in major units of the platform currency',
    new_pledge_count            Int64 COMMENT 'Change of the number of pledges on this day',
    opening_platform_amount     Decimal(38, 4) COMMENT 'What campaigns already had when the history first showed them, or showed them again, in major units of the platform currency; exact',
    opening_platform            Float64 COMMENT 'opening_platform_amount as a floating-point number, in major units of the platform currency',
    departed_platform_amount    Decimal(38, 4) COMMENT 'What went with campaigns that were no longer public, in major units of the platform currency; exact',
    departed_platform           Float64 COMMENT 'departed_platform_amount as a floating-point number, in major units of the platform currency',
    pledged_platform_amount     Decimal(38, 4) COMMENT 'Of the public campaigns at the end of the day: the day before + new + opening - departed, in major units of the platform currency; exact',
    pledged_platform            Float64 COMMENT 'pledged_platform_amount as a floating-point number, in major units of the platform currency',
    campaigns                   UInt64 COMMENT 'Public campaigns at the end of the day'
)
SQL SECURITY DEFINER
AS SELECT
    known_day + gap AS day,
    if(gap = 0, new_amount, 0)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(gap = 0, new_pledges, 0)::Int64 AS new_pledge_count,
    if(gap = 0, opening, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    if(gap = 0, departed, 0)::Decimal(38, 4) AS departed_platform_amount,
    toFloat64(departed_platform_amount) AS departed_platform,
    standing AS pledged_platform_amount,
    toFloat64(standing) AS pledged_platform,
    toUInt64(standing_campaigns) AS campaigns
FROM
(
    WITH (SELECT today FROM ${base}.history_end) AS today
    SELECT
        arraySort(groupArray((day, new_amount, new_pledges, opening, departed, campaigns))) AS known,
        known.1 AS days, known.2 AS amounts, known.3 AS pledges, known.4 AS openings, known.5 AS departures,
        arrayCumSum((a, o, d) -> a + o - d, amounts, openings, departures) AS sums,
        arrayCumSum(known.6) AS counts,
        -- The days until the next known one, or until today.
        arrayMap(n -> range(toUInt32(if(n < length(days), days[n + 1], greatest(days[n], today) + 1) - days[n])),
            arrayEnumerate(days)) AS gaps
    FROM
    (
        SELECT day, sum(new_amount) AS new_amount, sum(new_pledges) AS new_pledges, sum(opening) AS opening,
            sum(departed) AS departed, sum(campaigns) AS campaigns
        FROM ${base}.history_moves
        WHERE NOT is_between
        GROUP BY day
    )
    HAVING count() > 0
)
ARRAY JOIN
    days AS known_day, amounts AS new_amount, pledges AS new_pledges, openings AS opening, departures AS departed,
    sums AS standing, counts AS standing_campaigns, gaps AS own_gaps
ARRAY JOIN own_gaps AS gap
COMMENT 'What the public campaigns of the whole platform gained on each UTC day';
