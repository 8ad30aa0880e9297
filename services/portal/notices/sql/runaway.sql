-- Active keys of whose requests at least half were refused with 429 in the 15 minutes before `until`, and that were refused in
-- at least `minutes_min` of these minutes: one burst is no runaway. At most `rows_max` keys, without those that have a notice
-- from after `since`.
-- It has contact addresses (private).

SELECT
    ledger.api_key AS key,
    ledger.integration_name AS name,
    ledger.integration_contact_email AS contact_email,
    usage.requests AS requests,
    usage.refused AS refused
FROM
(
    SELECT
        api_key,
        sum(ok + not_modified + unauthorized + too_many + other) AS requests,
        sum(too_many) AS refused,
        uniqExactIf(minute, too_many > 0) AS refused_minutes
    FROM ${base}.api_key_usage FINAL
    WHERE minute >= fromUnixTimestamp64Milli({until:Int64}, 'UTC') - INTERVAL 15 MINUTE
        AND minute < fromUnixTimestamp64Milli({until:Int64}, 'UTC')
    GROUP BY api_key
    HAVING refused * 2 >= requests AND refused_minutes >= {minutes_min:UInt32}
) AS usage
INNER JOIN (SELECT * FROM ${base}.api_key_ledger FINAL) AS ledger ON ledger.api_key = usage.api_key
INNER JOIN (SELECT * FROM ${base}.api_keys FINAL) AS folded ON folded.api_key = usage.api_key
WHERE ledger.is_unrevoked AND folded.is_active AND ledger.integration_contact_email != ''
    AND ifNull(ledger.expires_at > now64(3, 'UTC'), 1)
    AND substring(ledger.api_key, 1, {prefix_length:UInt32}) NOT IN
    (
        SELECT splitByString('.RUNAWAY_TRAFFIC.', notice_id)[1]
        FROM ${base}.notice_ledger FINAL
        WHERE rule = 'RUNAWAY_TRAFFIC' AND created_at > fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    )
ORDER BY refused DESC, key
LIMIT {rows_max:UInt32}
SETTINGS do_not_merge_across_partitions_select_final = 1
