-- The batch log as a projector would have written it: batches that touched every campaign.
INSERT INTO ${ledger}.batch_log (projector, sequence, positions, events, rejects, keys, campaign_ids, oldest_at)
SELECT
    'bench',
    intDiv(number, {campaigns_per_batch:UInt64}) + 1 AS batch,
    [],
    count(),
    0,
    0,
    groupArray(concat('cmp_', leftPad(toString(number), 7, '0'))),
    now64(3, 'UTC')
FROM numbers({campaigns:UInt64})
GROUP BY batch
SETTINGS async_insert = 0
