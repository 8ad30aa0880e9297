-- Records that the batches of the fold with this target are in the read tables. It has the fence, too: a superseded fold worker
-- must not record what it did not write.
INSERT INTO ${ledger}.fold_progress (projector, is_folded, sequence, fold_id, elapsed_ms)
SELECT projector, true, sequence, {fold_id:UInt64}, {elapsed_ms:UInt64}
FROM ${ledger}.fold_progress FINAL
WHERE NOT is_folded AND fold_id = {target_id:UInt64} AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
