-- Keys that end by themselves. A key of the portal has to be confirmed, because its secret may never have reached a person.
-- A key that another one replaces expires. Both moments are in the ledger, and the view compares them with ClickHouse's
-- clock whenever it is read: a key ends at its time, also if nothing writes an event then.
--
-- The fold does not look at the time, so that it stays a function of the events. A key that has ended therefore counts as
-- one of the three of its account until its end is in the log as well (services/shared/api-keys/ended-keys.ts).

ALTER TABLE ${model}.api_key_ledger
    ADD COLUMN IF NOT EXISTS integration_id String COMMENT 'Empty: not issued in the portal',
    ADD COLUMN IF NOT EXISTS confirm_by Nullable(DateTime64(3, 'UTC')) COMMENT 'Refused from then on. Null: confirmed',
    ADD COLUMN IF NOT EXISTS expires_at Nullable(DateTime64(3, 'UTC')) COMMENT 'Refused from then on. Null: never',
    ADD COLUMN IF NOT EXISTS replaces String COMMENT 'Key that this one replaces. Empty: none',
    ADD COLUMN IF NOT EXISTS replaced_until Nullable(DateTime64(3, 'UTC')) COMMENT 'When the replaced key expires';

CREATE OR REPLACE VIEW ${model}.revoked_keys
(
    api_key String COMMENT 'Key that is revoked or has ended, and still active in api_keys'
)
SQL SECURITY DEFINER
AS SELECT api_key
FROM ${model}.api_keys FINAL
WHERE is_active AND api_key IN (SELECT api_key FROM ${model}.api_key_ledger FINAL
    WHERE NOT is_unrevoked OR ifNull(expires_at <= now64(3, 'UTC'), 0) OR ifNull(confirm_by <= now64(3, 'UTC'), 0));
