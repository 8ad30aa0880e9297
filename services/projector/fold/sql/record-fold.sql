-- Records a finished fold. It has the same fence: a superseded fold worker must not record what it did not write.
INSERT INTO ${model}.fold_log (fold_id, holder, folded, campaigns, elapsed_ms)
SELECT {fold_id:UInt64}, {holder:String},
    arrayZip(mapKeys({folded:Map(String, UInt64)}), mapValues({folded:Map(String, UInt64)})),
    {campaigns:UInt64}, {elapsed_ms:UInt64}
WHERE ${fence}
SETTINGS async_insert = 0
