-- Records that a campaign is set aside, or how its folds went since, or that it takes part in the common folds again. It has
-- the same fence as the folds. This is on disk before the progress of the common fold is: after a crash, the campaign is known.
INSERT INTO ${model}.set_aside (campaign_id, fold_id, is_set_aside, is_behind, failures, reason, since)
SELECT {campaign:String}, {fold_id:UInt64}, {is_set_aside:Bool}, {is_behind:Bool}, {failures:UInt32}, {reason:String},
    (
        SELECT if(any(is_set_aside), any(since), now64(3, 'UTC'))
        FROM ${model}.set_aside FINAL WHERE campaign_id = {campaign:String}
    )
WHERE ${fence}
SETTINGS async_insert = 0
