-- The journal: the embedded event log, one SQLite file. Schema version 1 (PRAGMA user_version).
--
-- A topic is one table with one partition, 0. AUTOINCREMENT makes offsets only grow: an offset is never used twice,
-- even after a deletion. The first offset is 1. Writers wait for each other, so offsets become visible in order.

CREATE TABLE records_campaigns
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL, -- ms since the epoch
    key         BLOB,
    value       BLOB              -- NULL: a tombstone
) STRICT;

CREATE TABLE records_pledges
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL,
    key         BLOB,
    value       BLOB
) STRICT;

CREATE TABLE records_api_keys
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL,
    key         BLOB,
    value       BLOB
) STRICT;

-- The portal's topics.
CREATE TABLE state_accounts
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL,
    key         BLOB,
    value       BLOB
) STRICT;

CREATE TABLE state_notices
(
    offset      INTEGER PRIMARY KEY AUTOINCREMENT,
    appended_at INTEGER NOT NULL,
    key         BLOB,
    value       BLOB
) STRICT;

-- Opening a consumer raises its generation, so its previous reader can commit no more.
CREATE TABLE consumers
(
    name       TEXT PRIMARY KEY,
    generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The offset that a consumer reads next, as committed. The rows of the topics 'watermark' and 'shown watermark' are
-- the watermarks that it remembers, Unix ms.
CREATE TABLE positions
(
    consumer  TEXT NOT NULL,
    topic     TEXT NOT NULL,
    partition INTEGER NOT NULL,
    next      INTEGER NOT NULL,
    PRIMARY KEY (consumer, topic, partition)
) STRICT, WITHOUT ROWID;
