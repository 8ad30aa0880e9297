-- On the first day of the history: gives the derived days of the campaigns that changed their new category, or hides them, and then they have
-- no text. It runs before note-days.sql, which looks up the day before. After the first day they stay as they are. Repeating it
-- gives the same rows.
INSERT INTO ${base}.campaign_days
WITH changed AS
(
    SELECT campaign_id, is_deleted, category, updated_at FROM ${read}.campaigns
    WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND toDate(updated_at) <= toDate({begun:UInt16}) AND ${piece}
    ORDER BY updated_at DESC
    LIMIT 1 BY campaign_id
)
SELECT
    days.* REPLACE (
        changed.is_deleted AS is_deleted, changed.category AS category, changed.updated_at AS updated_at,
        if(days.previous_source = '', '', changed.category) AS previous_category)
FROM (SELECT * FROM ${base}.campaign_days FINAL PREWHERE campaign_id IN (SELECT campaign_id FROM changed) WHERE source = 'derived') AS days
INNER JOIN changed ON changed.campaign_id = days.campaign_id
WHERE ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0
