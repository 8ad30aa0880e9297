-- portal.sqlite: what the embedded portal keeps for a limited time. It can be deleted: everyone then signs in again.

-- Sessions and sign-ins under way. `name` holds hashes of what browsers have, never the thing itself.
CREATE TABLE IF NOT EXISTS entries (
  name       TEXT    NOT NULL PRIMARY KEY,
  value      TEXT    NOT NULL,
  -- Unix milliseconds. An entry whose time is over counts as absent, and is deleted later.
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS entries_by_end ON entries (expires_at);
