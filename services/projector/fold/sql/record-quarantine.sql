-- Records that a campaign is in quarantine, or how its last try went, or that it takes part in the common folds again. It has the same
-- fence as the folds. This is on disk before the progress of the common fold is: after a crash, the campaign is known.
INSERT INTO ${ledger}.quarantine (campaign_id, fold_id, is_quarantined, failures, reason, since)
SELECT {campaign:String}, {fold_id:UInt64}, {is_quarantined:Bool}, {failures:UInt32}, {reason:String},
    (
        SELECT if(any(is_quarantined), any(since), now64(3, 'UTC'))
        FROM ${ledger}.quarantine FINAL WHERE campaign_id = {campaign:String}
    )
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
