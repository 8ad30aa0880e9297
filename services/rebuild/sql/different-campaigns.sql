-- Campaigns that these tables show with other content than the other ones, a page of them (compare-pledges.ts).
SELECT shown.campaign_id AS id
FROM (SELECT campaign_id, content_hash FROM ${model}.campaigns FINAL WHERE campaign_id > {after:String}) AS shown
INNER JOIN (SELECT campaign_id, hash FROM ${model}.${stamps} WHERE campaign_id > {after:String}) AS taken
    ON taken.campaign_id = shown.campaign_id
WHERE taken.hash != hex(shown.content_hash)
ORDER BY id
LIMIT {rows_max:UInt32}
