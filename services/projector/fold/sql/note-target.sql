-- Notes the batches of the fold that begins now: up to which batch of each run of a projector. Later batches are for the next fold.
INSERT INTO ${ledger}.fold_progress (projector, is_folded, sequence, fold_id, elapsed_ms)
SELECT batch.projector, false, max(batch.sequence), {fold_id:UInt64}, 0
FROM ${ledger}.batch_log AS batch
WHERE ${unfolded} AND ${fence}
GROUP BY batch.projector
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
