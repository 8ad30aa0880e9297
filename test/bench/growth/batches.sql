-- The batch log of three projectors that were busy for a month: `batches` rows in all, up to this moment.
INSERT INTO ${ledger}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at, appended_at)
SELECT
    concat('month-', toString(number % 3)) AS projector,
    intDiv(number, 3) + 1 AS sequence,
    arrayMap(partition -> ('pledges', toUInt32(partition), number), range(6)),
    20,
    0,
    0,
    arrayMap(nth -> concat('cmp_', leftPad(toString((number + 7 * nth) % 4000), 7, '0')), range(20)),
    appended_at,
    now64(3, 'UTC') - toIntervalSecond(intDiv(({batches:UInt64} - number) * 2500000, {batches:UInt64})) AS appended_at
FROM numbers({batches:UInt64})
SETTINGS async_insert = 0
