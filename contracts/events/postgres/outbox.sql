-- The outbox: what Debezium reads. It knows nothing of your tables. Run it once, by `psql -f`, as a superuser or as the owner of the
-- database with the right to make replication slots. The server needs `wal_level = logical`.

-- Each role that changes your tables needs the schema: GRANT USAGE ON SCHEMA pledgeview TO your_application. It may then publish
-- anything, so no other role should have it.
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

-- It runs with its owner's rights, so a user of the platform needs none on the outbox.
CREATE FUNCTION pledgeview.publish(topic text, key text, state jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  inserted bigint;
BEGIN
  INSERT INTO pledgeview.outbox (topic, key, state)
  VALUES (topic, key, state || jsonb_build_object('version', nextval('pledgeview.version'), 'changed_at', pledgeview.iso(now())))
  RETURNING id INTO inserted;
  DELETE FROM pledgeview.outbox WHERE id = inserted;
END
$$;

-- A time as the events have it: UTC, three digits of a second. Null stays null.
CREATE FUNCTION pledgeview.iso(moment timestamptz) RETURNS text IMMUTABLE LANGUAGE sql AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- An amount in the currency's smallest unit. Add the currencies that your platform has and whose unit is not a hundredth
-- (../currencies.ts has them all).
CREATE FUNCTION pledgeview.minor(amount numeric, currency text) RETURNS bigint IMMUTABLE LANGUAGE sql AS $$
  SELECT round(amount * CASE
    WHEN currency IN ('CLP', 'ISK', 'JPY', 'KRW', 'VND', 'XAF', 'XOF') THEN 1
    WHEN currency IN ('BHD', 'JOD', 'KWD', 'OMR', 'TND') THEN 1000
    ELSE 100
  END)::bigint
$$;

-- The slot exists from now on: what is published from here is kept in the write-ahead log until Debezium has read it.
CREATE PUBLICATION pledgeview FOR TABLE pledgeview.outbox WITH (publish = 'insert');
SELECT pg_create_logical_replication_slot('pledgeview', 'pgoutput');
