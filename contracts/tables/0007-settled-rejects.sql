-- A retry settles a reject: its event is in the ledger now. The row is written once more, with this time and with the highest `earliness`,
-- so it is the one that stays, also if the record is read and rejected again.
ALTER TABLE ${base}.rejects
    ADD COLUMN IF NOT EXISTS settled_at DateTime64(3, 'UTC') DEFAULT toDateTime64(0, 3, 'UTC') COMMENT '1970: it is open';
