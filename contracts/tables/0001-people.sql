-- What no generation owns, because versions alone decide: the keys, and the ledgers of the developer portal. Every generation writes
-- them, in any order and as often as it likes, so a replay brings nothing back that was deleted or revoked.

-- Only the projector's role reads it, and the view revoked_keys, which shows nothing of it but keys.
--
-- A key that was made for a time expires. The fold does not look at the time, so that it stays a function of the events. A key that
-- has expired therefore counts as one of the three of its account until its end is in the log as well (services/api-keys/api-keys.ts).
CREATE TABLE IF NOT EXISTS ${base}.api_key_ledger
(
    api_key                   String,
    version                   UInt64,
    is_unrevoked              Bool,
    account_id                String,
    integration_name          String,
    integration_url           String,
    integration_contact_email String,
    secret_hash               String,
    scopes                    Array(String),
    issued_at                 DateTime64(3, 'UTC'),
    expires_at                Nullable(DateTime64(3, 'UTC')) COMMENT 'Refused from then on. Null: never'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY api_key
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The columns of a key that authentication needs, and no other columns. The three oldest unrevoked keys of an account are active.
CREATE TABLE IF NOT EXISTS ${base}.api_keys
(
    api_key     String,
    account_id  String,
    secret_hash String COMMENT 'Lower-case hex of HMAC-SHA-256(pepper, secret)',
    scopes      Array(String),
    is_active   Bool,
    updated_at  DateTime64(3, 'UTC'),
    fold_id     UInt64,
    is_deleted  UInt8
)
ENGINE = ReplacingMergeTree(fold_id, is_deleted)
ORDER BY api_key
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- The keys that the ledger already knows as revoked or ended, while the fold has not yet made them inactive. The query service
-- refuses them at once: a revocation does not wait for a fold, which may be busy, paused, or without a leader. Private.
-- The ledger is read first, because few of its keys are revoked, so the read table is then read by key.

CREATE OR REPLACE VIEW ${base}.revoked_keys
(
    api_key String COMMENT 'Key that is revoked or has ended, and still active in api_keys'
)
SQL SECURITY DEFINER
AS SELECT api_key
FROM ${base}.api_keys FINAL
WHERE is_active AND api_key IN (SELECT api_key FROM ${base}.api_key_ledger FINAL
    WHERE NOT is_unrevoked OR ifNull(expires_at <= now64(3, 'UTC'), 0));

-- The ledgers of the developer portal (private): accounts, and the mails that a rule caused. The projector writes them from the
-- topics `accounts` and `notices`, and the portal reads them. Analysts and the query service may not.
--
-- A deleted account keeps its id, which is a keyed hash, its version and times, for good: they are what an old state that lands
-- late is compared with. Nobody can tell from it whose account it was, without the portal's key and the address itself.
--
-- version: life * 2^42 + a part (contracts/events/account.avsc.json).

CREATE TABLE IF NOT EXISTS ${base}.account_ledger
(
    account_id          String,
    version             UInt64,
    email               String COMMENT 'Empty: deleted',
    created_at          DateTime64(3, 'UTC'),
    sessions_valid_from DateTime64(3, 'UTC'),
    changed_at          DateTime64(3, 'UTC'),
    written_at          DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When this row came, whatever clock its portal has'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY account_id
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- A notice that is settled has no address and no text. After its time it is removed by a row without content. ClickHouse forgets
-- every row 800 days after its last change.
CREATE TABLE IF NOT EXISTS ${base}.notice_ledger
(
    notice_id  String,
    version    UInt64 COMMENT 'What is settled outranks what waits',
    rule       LowCardinality(String) COMMENT 'Empty: removed',
    status     LowCardinality(String),
    account_id String COMMENT 'Empty: none',
    recipient  String,
    subject    String,
    text       String,
    created_at DateTime64(3, 'UTC'),
    sent_at    Nullable(DateTime64(3, 'UTC')),
    changed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY notice_id
TTL toDateTime(changed_at) + INTERVAL 800 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
