-- Pledges for the benches. A few campaigns have very many pledges (the largest has one in seventy), most have a few. The
-- large campaigns are spread over the ids. One pledge in twenty does not count. Backers pledge more than once.
INSERT INTO ${ledger}.pledge_ledger
    (campaign_id, pledge_id, version, counts, backer_hash, amount_minor, platform_amount_minor, reward_id)
WITH
    toUInt64({campaigns:UInt64} * pow(cityHash64(number, 'campaign') / 18446744073709551616., 3)) AS rank,
    1000 + cityHash64(number, 'amount') % 10000 AS amount
SELECT
    concat('cmp_', leftPad(toString(rank * 279470273 % {campaigns:UInt64}), 7, '0')),
    concat('p_', toString(number)),
    1,
    number % 20 != 0,
    cityHash64(cityHash64(number, 'backer') % {backers:UInt64}),
    amount,
    amount,
    if(number % 7 = 0, '', concat('tier-', toString(number % 5 + 1)))
FROM numbers({pledges:UInt64})
SETTINGS async_insert = 0, max_insert_threads = 2
