-- Old months of usage and adjustments can be taken out (quotad archive). The database itself refuses
-- what would be booked or billed of them then. All instants are µs since the Unix epoch.

-- +goose Up

-- before: usage and adjustments of earlier hours are never written any more. The partitions that had
-- these hours, and the default one, have a constraint of the name "archived".
-- gone_before: usage and adjustments have no rows of earlier hours any more.
CREATE TABLE archive (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    before      bigint  NOT NULL DEFAULT -9223372036854775808,
    gone_before bigint  NOT NULL DEFAULT -9223372036854775808 CHECK (gone_before <= before)
);
INSERT INTO archive DEFAULT VALUES;

-- The tables that were partitions. name: theirs now. part_of: usage or adjustments. was: the name
-- before. from_at: null where the partition had all earlier hours.
CREATE TABLE archived_tables (
    name    text        PRIMARY KEY,
    part_of text        NOT NULL,
    was     text        NOT NULL,
    from_at bigint,
    to_at   bigint      NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);

-- What these tables of usage have in all: units admitted, and denied. So what was charged is still
-- what was booked.
CREATE TABLE archived_sums (
    shard    smallint NOT NULL,
    customer bigint   NOT NULL,
    meter    integer  NOT NULL,
    units    numeric  NOT NULL,
    denied   numeric  NOT NULL,
    PRIMARY KEY (shard, customer, meter)
);

-- +goose StatementBegin
CREATE FUNCTION refuse_archived(at bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the usage of % is archived', to_timestamp(at / 1000000.0)
        USING ERRCODE = 'check_violation', CONSTRAINT = 'archived';
END $$;

-- An hour is archived for a bound, too, if it is of a closed period that began before it: a correction
-- of that period would need all of its usage.
CREATE FUNCTION is_archived(of_customer bigint, of_hour bigint, bound bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT of_hour < bound OR coalesce((SELECT start_at < bound AND end_at > of_hour FROM periods
        WHERE customer_id = of_customer AND start_at <= of_hour ORDER BY start_at DESC LIMIT 1), false)
$$;

CREATE FUNCTION open_adjustment_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF is_archived(NEW.customer, NEW.hour, (SELECT before FROM archive)) THEN
        PERFORM refuse_archived(NEW.hour);
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION open_period_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.start_at < (SELECT before FROM archive) THEN
        PERFORM refuse_archived(NEW.start_at);
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION draft_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.period_start < (SELECT before FROM archive) THEN
        PERFORM refuse_archived(NEW.period_start);
    END IF;
    RETURN NEW;
END $$;
-- What is charged on a test clock is booked in the hour that it shows. That hour begins less than a day
-- before.
CREATE FUNCTION test_clock_archived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.now < (SELECT before FROM archive) + 86400000000 THEN
        PERFORM refuse_archived(NEW.now);
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER archived BEFORE INSERT ON open_adjustments FOR EACH ROW EXECUTE FUNCTION open_adjustment_archived();
CREATE TRIGGER archived_open BEFORE INSERT ON open_periods FOR EACH ROW EXECUTE FUNCTION open_period_archived();
CREATE TRIGGER archived_moved BEFORE UPDATE OF start_at ON open_periods FOR EACH ROW
    WHEN (NEW.start_at IS DISTINCT FROM OLD.start_at) EXECUTE FUNCTION open_period_archived();
CREATE TRIGGER archived BEFORE INSERT ON invoices FOR EACH ROW WHEN (NEW.kind <> 'credit_note' AND NEW.n >= 0) EXECUTE FUNCTION draft_archived();
CREATE TRIGGER archived BEFORE INSERT OR UPDATE OF now ON test_clocks FOR EACH ROW EXECUTE FUNCTION test_clock_archived();

-- +goose Down
-- The months become partitions again. That needs all of their tables.
-- +goose StatementBegin
DO $$
DECLARE
    t record;
BEGIN
    FOR t IN SELECT * FROM archived_tables LOOP
        IF to_regclass(t.name) IS NULL THEN
            RAISE EXCEPTION 'the table % is gone: restore it first, or this version cannot be taken back', t.name;
        END IF;
    END LOOP;
    FOR t IN SELECT c.oid::regclass AS name FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
        JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent IN ('usage'::regclass, 'adjustments'::regclass)
        WHERE k.conname = 'archived' LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT archived', t.name);
    END LOOP;
    FOR t IN SELECT * FROM archived_tables ORDER BY to_at LOOP
        EXECUTE format('ALTER TABLE %I RENAME TO %I', t.name, t.was);
        EXECUTE format('ALTER INDEX IF EXISTS %I RENAME TO %I', t.name || '_pkey', t.was || '_pkey');
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', t.part_of, t.was, coalesce(t.from_at::text, 'MINVALUE'), t.to_at);
    END LOOP;
END $$;
-- +goose StatementEnd
DROP TRIGGER archived ON open_adjustments;
DROP TRIGGER archived_open ON open_periods;
DROP TRIGGER archived_moved ON open_periods;
DROP TRIGGER archived ON invoices;
DROP TRIGGER archived ON test_clocks;
DROP FUNCTION open_adjustment_archived, open_period_archived, draft_archived, test_clock_archived, is_archived, refuse_archived;
DROP TABLE archived_sums, archived_tables, archive;
