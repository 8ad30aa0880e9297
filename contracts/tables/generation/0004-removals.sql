-- Which campaigns were public and no longer are (private). `GET /removals` shows them.
--
-- A campaign that left has a row without content already (0003-read-tables.sql). Only those count whose campaign a reader could have seen:
-- a restore also marks campaigns that were never public, and the fold writes 0 for them.

-- A row without an id says from when on the removals are complete: here from the moment at which these tables can tell them. A restore moves it on
-- (services/projector/fold/fold-statements.ts), and a promotion takes that of the generation before.
INSERT INTO ${read}.campaigns (campaign_id, content_hash, updated_at, fold_id, is_deleted)
SELECT '', toFixedString('', 16), greatest(now64(3, 'UTC'), (SELECT max(reached) FROM ${read}.watermarks)), 0, 1;

CREATE OR REPLACE VIEW ${read}.removals
(
    campaign_id String COMMENT 'Campaign that is no longer public. Empty: the row says from when on the removals are complete',
    updated_at  DateTime64(3, 'UTC') COMMENT 'When it left, UTC'
)
SQL SECURITY DEFINER
AS SELECT campaign_id, argMax(row.updated_at, row.fold_id) AS updated_at
FROM ${read}.campaigns AS row
WHERE campaign_id IN (SELECT campaign_id FROM ${read}.campaigns WHERE was_public)
GROUP BY campaign_id
HAVING argMax(row.was_public, row.fold_id);
