-- What the campaigns of each category and month of launch have raised by now.
{{ config(order_by='(category, launch_month)') }}

select
    c.category as category,
    -- A public campaign has a launch date as a rule. Without one, its creation stands for it, so that no campaign is missing.
    makeDate32(toYear(ifNull(c.launch_date, c.created_at)), toMonth(ifNull(c.launch_date, c.created_at)), 1) as launch_month,
    count() as campaign_count,
    countIf(c.status = 'LIVE') as live_count,
    countIf(c.status = 'FUNDED') as funded_count,
    -- Of the campaigns that have ended. Null while none has.
    if(campaign_count = live_count, null, funded_count / (campaign_count - live_count)) as success_rate,
    sum(c.pledge_count) as pledge_count,
    sum(c.pledged_platform_amount) as pledged_platform_amount,
    toFloat64(sum(c.pledged_platform_amount)) as pledged_platform
from {{ source('crowdfunding', 'campaigns') }} as c
group by category, launch_month
