-- Writes nothing. On replicas, ClickHouse refuses it as long as it is not decided whether the rows of an earlier insert stay: a majority
-- of the replicas does not have them yet. So when it succeeds, all of them are visible, or never will be (fold-leadership.ts).
INSERT INTO ${read}.campaigns (campaign_id)
SELECT campaign_id FROM ${read}.campaigns WHERE false
SETTINGS max_execution_time = ${seconds_max}, async_insert = 0
