-- Copies the rows that changed since the last time into the history, each under the UTC day of its stamp. It runs after each fold and
-- before the next one. So no row of a day is lost, whenever the day ends, and no statement has to know that it does.
--
-- It reads without FINAL: a row that is superseded is as it was shown, and a later row of the same day replaces it. The first time it
-- copies everything under the day on which the history begins. Repeating it gives the same rows. A campaign that is no longer public
-- gets a row if it was in the history before, and a deleted one gets none.
INSERT INTO ${base}.campaign_days
    (campaign_id, day, source, is_complete, is_deleted, status, category, currency, pledged_amount, pledged_platform_amount, percent_funded,
    backer_count, pledge_count, follower_count, launched, updated_at)
WITH
    changed AS
    (
        SELECT campaign_id FROM ${read}.campaigns
        WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND ${piece}
    )
SELECT
    campaign_id, greatest(toDate(updated_at), toDate({begun:UInt16})), 'kept', true, is_deleted, status, category, currency, pledged_amount,
    pledged_platform_amount, percent_funded, backer_count, pledge_count, follower_count, toDate(launch_date), updated_at
FROM ${read}.campaigns
WHERE updated_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND ${piece}
    AND (is_deleted = 0 OR campaign_id IN
        (SELECT campaign_id FROM ${base}.campaign_days WHERE campaign_id IN (SELECT campaign_id FROM changed)))
    AND NOT (campaign_id IN
        (
            SELECT campaign_id FROM ${ledger}.campaign_ledger
            WHERE campaign_id IN (SELECT campaign_id FROM changed) AND version = 18446744073709551615
        ))
    AND ${fence}
SETTINGS max_execution_time = ${seconds_max}, max_memory_usage = ${memory_bytes_max}, async_insert = 0
