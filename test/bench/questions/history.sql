-- Ten days of each campaign, as the fold would have kept them: its amounts grow evenly. Those that run began a month ago.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_complete, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount,
    percent_funded, backer_count, pledge_count, follower_count, launched, updated_at)
WITH toDate(if(status = 'LIVE', now('UTC') - INTERVAL 30 DAY, assumeNotNull(launch_date))) AS began, began + 3 * step AS shown
SELECT
    campaign_id, shown, 'kept', true, 0, if(step = 10, status, 'LIVE'), category, currency, pledged_amount * step / 10,
    pledged_platform_amount * step / 10, percent_funded * step / 10, intDiv(backer_count * step, 10),
    intDiv(pledge_count * step, 10), follower_count, began, toDateTime64(shown, 3, 'UTC')
FROM ${read}.campaigns FINAL
ARRAY JOIN range(1, 11) AS step
SETTINGS async_insert = 0, max_insert_threads = 2
