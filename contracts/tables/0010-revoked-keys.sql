-- The keys that the ledger already knows as revoked, while the fold has not yet made them inactive. The query service
-- refuses them at once: a revocation does not wait for a fold, which may be busy, paused, or without a leader. Private.
-- The ledger is read first, because few of its keys are revoked, so the read table is then read by key.

CREATE OR REPLACE VIEW ${model}.revoked_keys
(
    api_key String COMMENT 'Key that is revoked, and still active in api_keys'
)
SQL SECURITY DEFINER
AS SELECT api_key
FROM ${model}.api_keys FINAL
WHERE is_active AND api_key IN (SELECT api_key FROM ${model}.api_key_ledger FINAL WHERE NOT is_unrevoked);
