-- The ledger (private): the latest state of every entity, for any order and number of its events.
--
-- ReplacingMergeTree(version) keeps the row with the highest version. A tombstone is written with the version 2^64-1,
-- which no event reaches. Read with FINAL. Any number of projectors insert, in any order, as often as they like. A
-- campaign that is not public has only its id and version, no content. A pledge has a keyed hash instead of the
-- backer's id.
--
-- Granules are small because a fold reads scattered campaigns. Inserts are fsynced because offsets are committed
-- after them. min_age_to_force_merge_seconds merges parts that are quiet for an hour. It is no bound for superseded
-- rows, withdrawn content included, because new parts hold back these merges. The leading projector and the command
-- purge keep that bound (services/tables/superseded.ts).

CREATE TABLE IF NOT EXISTS ${model}.campaign_ledger
(
${ledger_columns}
)
ENGINE = ReplacingMergeTree(version)
ORDER BY campaign_id
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- A pledge that does not count keeps only its ids and version.
CREATE TABLE IF NOT EXISTS ${model}.pledge_ledger
(
    campaign_id           String,
    pledge_id             String,
    version               UInt64,
    counts                Bool,
    backer_hash           UInt64 COMMENT 'Keyed hash of the backer id; the row backer_hash of the table identity says which',
    amount_minor          Int64,
    platform_amount_minor Int64,
    reward_id             String COMMENT 'Empty: no reward'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (campaign_id, pledge_id)
SETTINGS index_granularity = 512, fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- Only the projector's role reads it, and the view revoked_keys, which shows nothing of it but keys.
--
-- A key that another one replaces expires. The fold does not look at the time, so that it stays a function of the events. A key that
-- has expired therefore counts as one of the three of its account until its end is in the log as well (services/portal/keys/key-sweeper.ts).
CREATE TABLE IF NOT EXISTS ${model}.api_key_ledger
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
    integration_id            String COMMENT 'Empty: not issued in the portal',
    expires_at                Nullable(DateTime64(3, 'UTC')) COMMENT 'Refused from then on. Null: never',
    replaces                  String COMMENT 'Key that this one replaces. Empty: none',
    replaced_until            Nullable(DateTime64(3, 'UTC')) COMMENT 'When the replaced key expires'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY api_key
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- The ledgers of the developer portal (private): accounts with their integrations, and the mails that a rule caused. The
-- projector writes them from the topics `accounts` and `notices`, and the portal reads them. Analysts and the query service
-- may not.
--
-- An account and its integrations stand together: the account's own row has no integration_id. A deleted account keeps its
-- id, which is a keyed hash, its version and times, for good: they are what an old state that lands late is compared with.
-- Nobody can tell from it whose account it was, without the portal's key and the address itself.
--
-- version: life * 2^42 + a part (contracts/events/account.avsc.json). An integration exists only in the life of its account.

CREATE TABLE IF NOT EXISTS ${model}.account_ledger
(
    account_id          String,
    integration_id      String COMMENT 'Empty: the account itself',
    version             UInt64,
    email               String COMMENT 'Of the account, or the contact of the integration. Empty: deleted',
    name                String COMMENT 'Of the integration',
    url                 String COMMENT 'Of the integration',
    created_at          DateTime64(3, 'UTC'),
    sessions_valid_from DateTime64(3, 'UTC') COMMENT 'Of the account',
    changed_at          DateTime64(3, 'UTC'),
    written_at          DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') COMMENT 'When this row came, whatever clock its portal has'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (account_id, integration_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;

-- A notice that is settled has no address and no text. After its time it is removed by a row without content. ClickHouse forgets
-- every row 800 days after its last change.
CREATE TABLE IF NOT EXISTS ${model}.notice_ledger
(
    notice_id  String,
    version    UInt64 COMMENT 'What is settled outranks what waits',
    rule       LowCardinality(String) COMMENT 'Empty: removed',
    status     LowCardinality(String),
    account_id String COMMENT 'Empty: none',
    recipient  String,
    subject    String,
    text       String,
    attempts   UInt32,
    created_at DateTime64(3, 'UTC'),
    sent_at    Nullable(DateTime64(3, 'UTC')),
    changed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(version)
ORDER BY notice_id
TTL toDateTime(changed_at) + INTERVAL 800 DAY
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 3600;
