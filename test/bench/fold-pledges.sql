-- Pledges of one campaign for the fold bench, in the order in which they were made; ids in no order. One in twenty does not
-- count. Five backers make six pledges.
INSERT INTO ${ledger}.pledge_ledger
    (campaign_id, pledge_id, version, counts, backer_hash, amount_minor, platform_amount_minor, reward_id)
WITH 1000 + cityHash64(number, 'amount') % 10000 AS amount
SELECT
    {campaign:String},
    concat('p_', toString(cityHash64(number, {campaign:String}))),
    1,
    number % 20 != 0,
    cityHash64(number % intDiv({pledges:UInt64} * 5, 6), 'backer'),
    amount,
    amount,
    if(number % 7 = 0, '', concat('tier-', toString(number % 5 + 1)))
FROM numbers({first:UInt64}, {count:UInt64})
SETTINGS async_insert = 0
