-- Eight days of each campaign, as the fold would have kept them, from the day after its launch to its end or to yesterday: its amounts
-- grow evenly. The fold has written two more: the day of the launch, which it derived, and today. It derived the day of the end too, and
-- that row supersedes the one from here.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_complete, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount,
    percent_funded, backer_count, pledge_count, follower_count, launched, updated_at)
WITH
    toDate(assumeNotNull(launch_date)) AS began,
    if(status = 'LIVE', toDate(now('UTC')) - 1, toDate(assumeNotNull(end_date))) AS last,
    began + 1 + intDiv((last - began - 1) * (step - 1), 7) AS shown
SELECT
    campaign_id, shown, 'kept', true, 0, if(step = 8, status, 'LIVE'), category, currency, pledged_amount * step / 8,
    pledged_platform_amount * step / 8, percent_funded * step / 8, intDiv(backer_count * step, 8),
    intDiv(pledge_count * step, 8), follower_count, began, toDateTime64(shown, 3, 'UTC')
FROM ${read}.campaigns FINAL
ARRAY JOIN range(1, 9) AS step
SETTINGS async_insert = 0, max_insert_threads = 2
