-- Campaigns for the benches, computed from their number: every status and category, texts of 300 to 2,000 characters,
-- and five tiers each, half of them limited.
INSERT INTO ${ledger}.campaign_ledger
    (campaign_id, version, is_public, status, slug, url, title, subtitle, category, subcategory, location, image_url,
     currency, currency_digits, goal_amount_minor, campaign_type, project_type, is_staff_pick, has_adult_content, uses_ai,
     tags, follower_count, launch_date, end_date, created_at, creator_id, creator_name, creator_profile_url,
     creator_avatar_url, description, risks, rewards)
WITH
    ['LIVE', 'FUNDED', 'FUNDED', 'FUNDED', 'FUNDED', 'FAILED', 'FAILED', 'FAILED', 'FAILED', 'CANCELLED']
        [cityHash64(number, 'status') % 10 + 1] AS own_status,
    cityHash64(number, 'launch') AS moment,
    if(own_status = 'LIVE', now64(3, 'UTC') - INTERVAL 31 DAY - toIntervalSecond(moment % (28 * 86400)),
        toDateTime64('2018-01-01 00:00:00.000', 3, 'UTC') + moment % 245000000) AS launched,
    concat('campaign-', toString(number)) AS name,
    toString(number % 300000) AS creator
SELECT
    concat('cmp_', leftPad(toString(number), 7, '0')),
    3,
    true,
    own_status,
    name,
    concat('https://crowdfunding.example/projects/', name),
    concat('Campaign number ', toString(number)),
    'Something that nobody has made before',
    concat('Category ', toString(cityHash64(number, 'category') % 15)),
    concat('Subcategory ', toString(cityHash64(number, 'subcategory') % 150)),
    concat('Town ', toString(number % 1000)),
    concat('https://img.crowdfunding.example/', name, '.jpg'),
    ['USD', 'EUR', 'GBP', 'JPY'][number % 4 + 1],
    [2, 2, 2, 0][number % 4 + 1],
    10000 + cityHash64(number, 'goal') % 10000000,
    'ALL_OR_NOTHING',
    'GENERAL',
    number % 10 = 0,
    number % 50 = 0,
    number % 20 = 0,
    ['made', 'by hand'],
    cityHash64(number, 'followers') % 10000,
    launched,
    launched + if(own_status = 'LIVE', 60, 30) * 86400,
    launched - 14 * 86400,
    concat('u_', creator),
    concat('Creator ', creator),
    concat('https://crowdfunding.example/creators/', creator),
    NULL,
    repeat('What it is, who makes it, and why it is worth a pledge. ', 5 + number % 30),
    'Schedules may slip.',
    arrayMap(tier -> (
        concat('tier-', toString(tier)),
        concat('Tier ', toString(tier)),
        'What a backer gets, and when it is sent',
        1000 * tier,
        if(tier % 2 = 0, NULL, 500)
    ), range(1, 6))
FROM numbers({campaigns:UInt64})
SETTINGS async_insert = 0, max_insert_threads = 2
