-- How each campaign that has ended came out.
-- order_by is the table's sorting key: most questions are about a category.
{{ config(order_by='(category, campaign_id)') }}

select
    campaign_id,
    category,
    currency,
    status,
    cast(status = 'FUNDED' as Bool) as is_funded,
    goal,
    pledged,
    pledged_platform,
    percent,
    backer_count,
    pledge_count,
    -- 0 / 0 would be NaN, which no tool sums.
    if(pledge_count = 0, null, pledged_platform / pledge_count) as average_pledge_platform,
    toDate32(launch_date, 'UTC') as launched_on,
    toDate32(end_date, 'UTC') as ended_on,
    dateDiff('millisecond', launch_date, end_date) / 86400000 as duration_days
from {{ source('crowdfunding', 'campaigns') }}
where status != 'LIVE'
