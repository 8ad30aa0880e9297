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
