-- Those of these pledges, withdrawn in the other tables at these versions, that count here although nothing newer has come
-- (compare-pledges.ts).
SELECT here.campaign_id AS campaign_id, here.pledge_id AS pledge_id, toString(here.version) AS version
FROM
(
    SELECT campaign_id, pledge_id, version FROM ${model}.pledge_ledger FINAL
    WHERE counts AND campaign_id IN {campaigns:Array(String)} AND pledge_id IN {pledges:Array(String)}
) AS here
INNER JOIN
(
    SELECT row.1 AS campaign_id, row.2 AS pledge_id, toUInt64(row.3) AS version
    FROM (SELECT arrayJoin(arrayZip({campaigns:Array(String)}, {pledges:Array(String)}, {versions:Array(String)})) AS row)
) AS there ON there.campaign_id = here.campaign_id AND there.pledge_id = here.pledge_id
WHERE here.version <= there.version
