-- The journal: the embedded event log, one SQLite file. Schema version 2 (PRAGMA user_version).
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

-- The watermarks that a reader remembers, Unix ms: no list has shown a higher one; lists have shown this one.
CREATE TABLE watermarks
(
    consumer  TEXT PRIMARY KEY,
    watermark INTEGER NOT NULL,
    shown     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
