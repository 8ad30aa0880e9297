-- Records a finished fold, under the same fence: what a superseded folder did not write, it must not report as folded.
INSERT INTO ${model}.fold_log (fold_id, holder, folded, campaigns, elapsed_ms)
SELECT {fold_id:UInt64}, {holder:String},
    arrayZip(mapKeys({folded:Map(String, UInt64)}), mapValues({folded:Map(String, UInt64)})),
    {campaigns:UInt64}, {elapsed_ms:UInt64}
WHERE ${holds}
SETTINGS async_insert = 0
