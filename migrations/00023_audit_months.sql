-- audit is partitioned by the UTC month of its time. A month that is older than audit-retention is
-- dropped as a table. The table of before becomes the first partition: no row moves. It may be run again.
--
-- Months to come are made by nodes (upkeep.Partitioner). Entries of months that are not made lie in
-- the partition audit_default.

-- +goose NO TRANSACTION
-- +goose Up

-- The first partition ends with a month, at least two days from now, and after all that is there.
-- The constraint is validated beside writers. Only the swap after it locks the table for all.
-- +goose StatementBegin
DO $$
DECLARE
    bound  timestamptz;
    part   text;
    failed text;
BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = 'audit'::regclass) = 'p' THEN
        RETURN;
    END IF;
    LOCK TABLE audit IN SHARE UPDATE EXCLUSIVE MODE;
    ALTER TABLE audit DROP CONSTRAINT IF EXISTS audit_bound;
    bound := (date_trunc('month', greatest(clock_timestamp() + interval '2 days', (SELECT max(at) FROM audit)) AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
    EXECUTE format('ALTER TABLE audit ADD CONSTRAINT audit_bound CHECK (at < %L) NOT VALID', bound);
    COMMIT;
    BEGIN
        ALTER TABLE audit VALIDATE CONSTRAINT audit_bound;

        LOCK TABLE audit IN ACCESS EXCLUSIVE MODE;
        ALTER TABLE audit RENAME TO audit_first;
        FOREACH part IN ARRAY ARRAY['pkey', 'at', 'actor', 'subject', 'customer'] LOOP
            EXECUTE format('ALTER INDEX %I RENAME TO %I', 'audit_' || part, 'audit_first_' || part);
        END LOOP;
        DROP TRIGGER audit_stands ON audit_first;
        ALTER TABLE audit_first ALTER id DROP IDENTITY;
        CREATE TABLE audit (LIKE audit_first INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY RANGE (at);
        EXECUTE format('ALTER TABLE audit ALTER id ADD GENERATED ALWAYS AS IDENTITY (START WITH %s)', (SELECT coalesce(max(id), 0) + 1 FROM audit_first));
        CREATE INDEX audit_at ON audit (at, id);
        CREATE INDEX audit_actor ON audit (actor, at, id);
        CREATE INDEX audit_subject ON audit (subject, at, id);
        CREATE INDEX audit_customer ON audit (customer, id) WHERE customer IS NOT NULL AND NOT scrubbed;
        EXECUTE format('ALTER TABLE audit ATTACH PARTITION audit_first FOR VALUES FROM (MINVALUE) TO (%L)', bound);
        CREATE TABLE audit_default PARTITION OF audit DEFAULT;
        ALTER TABLE audit_first DROP CONSTRAINT audit_bound;
        CREATE TRIGGER audit_stands BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stands();
        CREATE TRIGGER audit_stays BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_stands();
        CREATE TRIGGER audit_stays BEFORE TRUNCATE ON audit_default FOR EACH STATEMENT EXECUTE FUNCTION audit_stands();
    EXCEPTION WHEN OTHERS OR query_canceled THEN
        failed := format('audit is not partitioned: %s (%s)', SQLERRM, SQLSTATE);
    END;
    IF failed IS NOT NULL THEN -- the constraint must not be there when its month ends
        ALTER TABLE audit DROP CONSTRAINT audit_bound;
        COMMIT;
        RAISE EXCEPTION '%', failed;
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
-- All entries go into one table again.
-- +goose StatementBegin
DO $$
DECLARE
    part text;
BEGIN
    IF (SELECT relkind FROM pg_class WHERE oid = 'audit'::regclass) <> 'p' THEN
        RETURN;
    END IF;
    ALTER TABLE audit RENAME TO audit_months;
    FOREACH part IN ARRAY ARRAY['at', 'actor', 'subject', 'customer'] LOOP
        EXECUTE format('ALTER INDEX %I RENAME TO %I', 'audit_' || part, 'audit_months_' || part);
    END LOOP;
    CREATE TABLE audit (LIKE audit_months INCLUDING DEFAULTS INCLUDING STORAGE);
    EXECUTE format('ALTER TABLE audit ALTER id ADD GENERATED ALWAYS AS IDENTITY (START WITH %s)', (SELECT coalesce(max(id), 0) + 1 FROM audit_months));
    INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM audit_months;
    DROP TABLE audit_months;
    ALTER TABLE audit ADD CONSTRAINT audit_pkey PRIMARY KEY (id);
    CREATE INDEX audit_at ON audit (at, id);
    CREATE INDEX audit_actor ON audit (actor, at, id);
    CREATE INDEX audit_subject ON audit (subject, at, id);
    CREATE INDEX audit_customer ON audit (customer, id) WHERE customer IS NOT NULL AND NOT scrubbed;
    CREATE TRIGGER audit_stands BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_stands();
    CREATE TRIGGER audit_stays BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_stands();
END $$;
-- +goose StatementEnd
