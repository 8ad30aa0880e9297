-- The outbox: what Debezium reads. It knows nothing of your tables. Run it once, as the owner of your tables, with REPLICATION and
-- CREATE on the database. The last lines of this file take everything away again.
\set ON_ERROR_STOP on
BEGIN;

DO $$ BEGIN
  IF current_setting('wal_level') <> 'logical' THEN
    RAISE 'wal_level is %, not logical. ALTER SYSTEM SET wal_level = logical, and restart Postgres', current_setting('wal_level');
  END IF;
END $$;

CREATE SCHEMA pledgeview;

-- Each row is one record for Kafka. It is deleted in the transaction that inserts it: Debezium reads the insert from the write-ahead
-- log, so the table stays empty.
CREATE TABLE pledgeview.outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  topic text NOT NULL,
  key text NOT NULL,
  -- Null is a tombstone: the entity was deleted.
  state jsonb
);

-- One counter for all entities. It is read while the entity's row is locked, so a later state has a higher version.
CREATE SEQUENCE pledgeview.version AS bigint;

-- A time as the events have it: UTC, three digits of a second. Null stays null.
CREATE FUNCTION pledgeview.iso(moment timestamptz) RETURNS text IMMUTABLE LANGUAGE sql AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE FUNCTION pledgeview.stamped(state jsonb) RETURNS jsonb LANGUAGE sql AS $$
  SELECT state || jsonb_build_object('version', nextval('pledgeview.version'), 'changed_at', pledgeview.iso(now()))
$$;

CREATE FUNCTION pledgeview.send(topic text, key text, state jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  inserted bigint;
BEGIN
  -- A transaction with REPEATABLE READ reads what was committed before it began, and would publish that as the latest state.
  IF current_setting('transaction_isolation') = 'repeatable read' THEN
    RAISE 'pledgeview: a transaction with REPEATABLE READ may publish an old state' USING HINT = 'Use READ COMMITTED, or SERIALIZABLE everywhere.';
  END IF;
  INSERT INTO pledgeview.outbox (topic, key, state) VALUES (topic, key, state) RETURNING id INTO inserted;
  DELETE FROM pledgeview.outbox WHERE id = inserted;
END
$$;

-- A state that is null would delete the entity for ever, so it is an error here. It is the state of a row that a join does not find.
CREATE FUNCTION pledgeview.publish(topic text, key text, state jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF state IS NULL THEN
    RAISE 'pledgeview: the state of % in % is null', key, topic USING HINT = 'Mend the functions of state.sql.';
  END IF;
  PERFORM pledgeview.send(topic, key, pledgeview.stamped(state));
END
$$;

-- A tombstone: an entity that is deleted never returns.
CREATE FUNCTION pledgeview.publish_deletion(topic text, key text) RETURNS void LANGUAGE sql AS $$
  SELECT pledgeview.send(topic, key, NULL)
$$;

-- An amount in the currency's smallest unit. Add the currencies that your platform has and whose unit is not a hundredth
-- (../currencies.ts has them all).
CREATE FUNCTION pledgeview.minor(amount numeric, currency text) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
  SELECT round(amount * CASE
    WHEN currency IS NULL THEN NULL
    WHEN currency IN ('CLP', 'ISK', 'JPY', 'KRW', 'VND', 'XAF', 'XOF') THEN 1
    WHEN currency IN ('BHD', 'JOD', 'KWD', 'OMR', 'TND') THEN 1000
    ELSE 100
  END)::bigint
$$;

CREATE PUBLICATION pledgeview FOR TABLE pledgeview.outbox WITH (publish = 'insert');
COMMIT;

-- The slot exists from now on: what is published from here is kept in the write-ahead log until Debezium has read it.
SELECT pg_create_logical_replication_slot('pledgeview', 'pgoutput');

-- To take everything away, end Debezium first:
-- DROP SCHEMA pledgeview CASCADE;
-- DROP PUBLICATION pledgeview;
-- SELECT pg_drop_replication_slot('pledgeview');
