-- The history for data teams (see ../0003-days.sql and ../README.md, "History"). Of the LIMIT, see 0001-views.sql.

-- How far the history is. Private.
CREATE OR REPLACE VIEW ${base}.history_end
(
    noted Date COMMENT 'The day of the last moment up to which it is written on every shard, UTC: earlier days that were kept are final',
    begun Date COMMENT 'The first day that was kept, UTC: until it is over, derived days may change',
    today Date COMMENT 'The day of the last moment that the fold has confirmed, UTC'
)
SQL SECURITY DEFINER
AS SELECT
    toDate((SELECT min(reached) FROM (SELECT max(noted) AS reached FROM ${base}.history_marks GROUP BY shard))) AS noted,
    (SELECT min(begun) FROM ${base}.history_marks) AS begun,
    toDate((SELECT max(reached) FROM ${read}.watermarks)) AS today;

-- Each day with what the campaign had at the end of its day before. Private: it has campaigns that are hidden by now, but none that are
-- deleted. Derived days are here only while the campaign is public. ClickHouse finds the hash of an id in a large set in a third of the
-- time that the id takes.
CREATE OR REPLACE VIEW ${base}.history_days
SQL SECURITY DEFINER
AS SELECT
    campaign_id, day, source, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count,
    pledge_count, follower_count, previous_category, previous_platform_amount, previous_backer_count, previous_pledge_count, complete_from,
    previous_source = 'kept' OR (previous_source = 'derived' AND is_present) AS was_public,
    is_opening,
    -- The days before it are not here: what it had on them is an opening amount of the sums.
    is_deleted = 0 AND previous_source = 'derived' AND NOT is_present AS is_cut
FROM
(
    SELECT *, cityHash64(campaign_id) IN (SELECT cityHash64(campaign_id) FROM ${read}.campaigns FINAL) AS is_present
    FROM ${base}.campaign_days FINAL
    -- Nothing ranks after a tombstone, so no FINAL is needed to find them.
    WHERE NOT (campaign_id IN (SELECT campaign_id FROM ${ledger}.campaign_ledger WHERE version = 18446744073709551615))
        AND (source = 'kept' OR (is_deleted = 0 AND is_present))
) AS days;

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
    percent_funded          Decimal(38, 2) COMMENT '100 * pledged_amount / goal, percent, rounded half up to two decimals; 0 when the goal is 0',
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
    is_final                Bool COMMENT 'False: the row may still change, because its day is not over, or because it is derived and the first day that was kept is not over',
    source                  LowCardinality(String) COMMENT 'kept: as it was shown at the end of the day. derived: the history did not exist yet; computed from the pledges that counted when it began, each from the day of its latest change on',
    launch_day              Nullable(Date) COMMENT 'Day of the launch of the campaign, UTC; null if the launch is not known, or is not between 1970 and 2149',
    complete_from           Date COMMENT 'From this day on, UTC, each pledge of the campaign stands on a day of its own; not after launch_day if its whole life is here. Pledges of the days before the history that were collected on the day of the end stand on that day'
)
SQL SECURITY DEFINER
AS SELECT
    campaign_id, day, status, category, currency, pledged_amount, toFloat64(pledged_amount) AS pledged, pledged_platform_amount,
    toFloat64(pledged_platform_amount) AS pledged_platform, percent_funded, toFloat64(percent_funded) AS percent, backer_count, pledge_count,
    if(source = 'kept', follower_count, NULL) AS follower_count,
    if(is_opening, 0, pledged_platform_amount - previous_platform_amount)::Decimal(38, 4) AS new_pledged_platform_amount,
    toFloat64(new_pledged_platform_amount) AS new_pledged_platform,
    if(is_opening, 0, toInt64(backer_count) - toInt64(previous_backer_count)) AS new_backer_count,
    if(is_opening, 0, toInt64(pledge_count) - toInt64(previous_pledge_count)) AS new_pledge_count,
    if(is_opening, pledged_platform_amount, 0)::Decimal(38, 4) AS opening_platform_amount,
    toFloat64(opening_platform_amount) AS opening_platform,
    ifNull(if(source = 'kept', day, (SELECT begun FROM ${base}.history_end)) < (SELECT noted FROM ${base}.history_end), false)::Bool AS is_final,
    source, launch_day, complete_from
FROM (SELECT *, cityHash64(campaign_id) AS id_hash FROM ${base}.history_days) AS days
-- Only what is public at present, and the launch as it is known now.
INNER JOIN
(
    SELECT cityHash64(campaign_id) AS id_hash, if(launch_date BETWEEN toDateTime64(0, 3, 'UTC') AND toDateTime64('2149-06-06', 3, 'UTC'), toDate(launch_date), NULL) AS launch_day
    FROM ${read}.campaigns FINAL
) AS present USING id_hash
WHERE is_deleted = 0
LIMIT 18446744073709551615
COMMENT 'Each public campaign at the end of each UTC day on which it changed, and what it gained on it. Days before the history began are derived';

-- What the rows of each day add to the platform. Private, like the next one.
CREATE OR REPLACE VIEW ${base}.history_gains
SQL SECURITY DEFINER
AS SELECT
    day,
    sumIf(pledged_platform_amount - previous_platform_amount, is_deleted = 0 AND NOT is_opening) AS new_amount,
    sumIf(toInt64(pledge_count) - toInt64(previous_pledge_count), is_deleted = 0 AND NOT is_opening) AS new_pledges,
    sumIf(pledged_platform_amount, is_opening) + sumIf(previous_platform_amount, is_cut) AS opening,
    sumIf(previous_platform_amount, is_deleted AND was_public) AS departed,
    toInt64(countIf(is_deleted = 0)) - toInt64(countIf(was_public)) AS campaigns
FROM ${base}.history_days
GROUP BY day
HAVING countIf(is_deleted = 0 OR was_public) > 0
LIMIT 18446744073709551615;

-- The same by category. A campaign that changes its category departs from the one that it leaves, and opens the other. Grouped by two
-- numbers, because text takes twice as long: categories by their hash, and 0 for none.
CREATE OR REPLACE VIEW ${base}.history_moves
SQL SECURITY DEFINER
AS SELECT
    day,
    name AS category,
    if(is_left, 0, sums.new_amount)::Decimal(38, 4) AS new_amount,
    if(is_left, 0, sums.new_pledges) AS new_pledges,
    multiIf(is_left, 0, left_hash = 0, sums.opening, sums.opening + gone)::Decimal(38, 4) AS opening,
    if(is_left OR left_hash = 0, gone, 0)::Decimal(38, 4) AS departed,
    multiIf(is_left, -rows, left_hash = 0, public_rows - known_rows, public_rows) AS campaigns
FROM
(
    SELECT
        day,
        -- 0 if it leaves none.
        any(if(is_deleted = 0 AND was_public AND own_hash != previous_hash, previous_hash, 0) AS left) AS left_hash,
        -- 0, which no category has, for one that came and went.
        any(multiIf(is_deleted = 0, own_hash, was_public, previous_hash, 0) AS to) AS to_hash,
        sumIf(pledged_platform_amount - previous_platform_amount, is_deleted = 0 AND NOT is_opening) AS new_amount,
        sumIf(toInt64(pledge_count) - toInt64(previous_pledge_count), is_deleted = 0 AND NOT is_opening) AS new_pledges,
        sumIf(pledged_platform_amount, is_opening) + sumIf(previous_platform_amount, is_cut) AS opening,
        sumIf(previous_platform_amount, was_public AND (is_deleted OR left != 0)) AS gone,
        toInt64(countIf(is_deleted = 0)) AS public_rows,
        toInt64(countIf(was_public)) AS known_rows,
        toInt64(count()) AS rows
    FROM (SELECT *, cityHash64(category)::UInt64 AS own_hash, cityHash64(previous_category)::UInt64 AS previous_hash FROM ${base}.history_days)
    -- Two keys are faster than three.
    GROUP BY day, if(left = 0, to, cityHash64(to, left))
) AS sums
ARRAY JOIN if(left_hash = 0, [false], [false, true]) AS is_left
INNER JOIN
(
    -- The hash of each name once, not of each row.
    SELECT name, cityHash64(name)::UInt64 AS name_hash FROM (SELECT DISTINCT category AS name FROM ${base}.campaign_days)
) AS names ON name_hash = if(is_left, left_hash, to_hash)
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
        category, day AS known_day, new_amount, new_pledges, opening, departed,
        sum(new_amount + opening - departed) OVER known AS standing,
        sum(campaigns) OVER known AS standing_campaigns,
        leadInFrame(day) OVER (PARTITION BY category ORDER BY day ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_day,
        -- The days until the next known one, or until today.
        range(toUInt32(if(next_day > day, next_day, greatest(day, today) + 1) - day)) AS gaps
    FROM
    (
        SELECT
            category, day, sum(moves.new_amount) AS new_amount, sum(moves.new_pledges) AS new_pledges, sum(moves.opening) AS opening,
            sum(moves.departed) AS departed, sum(moves.campaigns) AS campaigns
        FROM ${base}.history_moves AS moves
        GROUP BY category, day
    )
    WINDOW known AS (PARTITION BY category ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
ARRAY JOIN gaps AS gap
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
    -- Here, where it is used: on a cluster a query may say that no name of a WITH is known within (enable_global_with_statement).
    WITH (SELECT today FROM ${base}.history_end) AS today
    SELECT
        day AS known_day, new_amount, new_pledges, opening, departed,
        sum(new_amount + opening - departed) OVER known AS standing,
        sum(campaigns) OVER known AS standing_campaigns,
        leadInFrame(day) OVER (ORDER BY day ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next_day,
        -- The days until the next known one, or until today.
        range(toUInt32(if(next_day > day, next_day, greatest(day, today) + 1) - day)) AS gaps
    FROM
    (
        SELECT
            day, sum(moves.new_amount) AS new_amount, sum(moves.new_pledges) AS new_pledges, sum(moves.opening) AS opening,
            sum(moves.departed) AS departed, sum(moves.campaigns) AS campaigns
        FROM ${base}.history_gains AS moves
        GROUP BY day
    )
    WINDOW known AS (ORDER BY day ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
ARRAY JOIN gaps AS gap
COMMENT 'What the public campaigns of the whole platform gained on each UTC day';
