-- Eight days of each campaign, as the fold would have kept them, from the day after its launch to its end or to yesterday: its amounts
-- grow evenly. The fold has written two more: the day of the launch, which it derived, and today, which is written again with what the row
-- before it has. It derived the day of the end too, and that row is superseded by the one from here.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded, backer_count,
    pledge_count, follower_count, launched, updated_at, previous_source, previous_category, previous_platform_amount,
    previous_backer_count, previous_pledge_count, is_opening, complete_from)
WITH
    toDate(now('UTC')) AS today,
    toDate(assumeNotNull(launch_date)) AS began,
    if(status = 'LIVE', today - 1, toDate(assumeNotNull(end_date))) AS last,
    if(step = 9, today, began + 1 + intDiv((last - began - 1) * (step - 1), 7)) AS shown,
    least(step, 8) / 8 AS share,
    (step - 1) / 8 AS share_before
SELECT
    campaign_id, shown, 'kept', 0, if(step < 8, 'LIVE', status), category, currency, pledged_amount * share,
    pledged_platform_amount * share, percent_funded * share, toUInt64(backer_count * share), toUInt64(pledge_count * share), follower_count,
    began, greatest(updated_at, toDateTime64(shown, 3, 'UTC')), if(step = 1, 'derived', 'kept'), category,
    pledged_platform_amount * share_before, toUInt64(backer_count * share_before), toUInt64(pledge_count * share_before), false, began
FROM ${read}.campaigns FINAL
ARRAY JOIN range(1, 10) AS step
SETTINGS async_insert = 0, max_insert_threads = 2
