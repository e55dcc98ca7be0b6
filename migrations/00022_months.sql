-- usage and adjustments are partitioned by the UTC month of their hour. What is older is taken out
-- or dropped by the month then, and indexes of the months that are written to stay small. The tables
-- of before become the first partitions: no row of theirs moves. It may be run again.
--
-- Months to come are made by nodes (upkeep.Partitioner). Rows whose month is not made lie in the
-- partition usage_default: test clocks and imports write hours of any year.

-- +goose NO TRANSACTION
-- +goose Up

-- The first partition ends with a month, at least two days from now. Rows of later hours are those of
-- test clocks. Until this is done, such hours are refused by the constraint, which is validated beside
-- all other writes. Only the swap after it locks the table for all: it reads no row of it. If it
-- fails, the constraint goes again: it must not be there when its month ends.
-- A table that Citus has distributed stays in one piece.
-- +goose StatementBegin
DO $$
DECLARE
    hot    text;
    bound  bigint := extract(epoch FROM date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC' + interval '2 days') + interval '1 month') * 1000000;
    whole  boolean;
    failed text;
BEGIN
    FOREACH hot IN ARRAY ARRAY['usage', 'adjustments'] LOOP
        whole := (SELECT relkind = 'r' FROM pg_class WHERE oid = hot::regclass);
        IF whole AND to_regclass('pg_dist_partition') IS NOT NULL THEN
            EXECUTE 'SELECT NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = $1::regclass)' INTO whole USING hot;
        END IF;
        CONTINUE WHEN NOT whole;
        -- An autovacuum ends a second after somebody waits for it. Hits do not wait with this lock.
        EXECUTE format('LOCK TABLE %I IN SHARE UPDATE EXCLUSIVE MODE', hot);
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS %I', hot, hot || '_bound');
        EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I CHECK (hour < %s) NOT VALID', hot, hot || '_bound', bound);
        COMMIT;
        failed := NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING INDEXES INCLUDING STORAGE)', hot || '_default', hot);
            EXECUTE format('WITH ahead AS (DELETE FROM %I WHERE hour >= %s RETURNING *) INSERT INTO %I SELECT * FROM ahead', hot, bound, hot || '_default');
            EXECUTE format('ALTER TABLE %I VALIDATE CONSTRAINT %I', hot, hot || '_bound');

            EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', hot);
            EXECUTE format('ALTER TABLE %I RENAME TO %I', hot, hot || '_first');
            EXECUTE format('ALTER INDEX %I RENAME TO %I', hot || '_pkey', hot || '_first_pkey');
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING INDEXES INCLUDING STORAGE) PARTITION BY RANGE (hour)', hot, hot || '_first');
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%s)', hot, hot || '_first', bound);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', hot, hot || '_default');
            EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', hot || '_first', hot || '_bound');
            IF hot = 'usage' THEN
                ALTER TABLE usage_default SET (fillfactor = 80);
            ELSIF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'adjustments_first'::regclass AND tgname = 'adjustments_open') THEN
                DROP TRIGGER adjustments_open ON adjustments_first;
                CREATE TRIGGER adjustments_open AFTER INSERT ON adjustments REFERENCING NEW TABLE AS added
                    FOR EACH STATEMENT EXECUTE FUNCTION adjustments_open();
            END IF;
        EXCEPTION WHEN OTHERS OR query_canceled THEN
            failed := format('%s is not partitioned: %s (%s)', hot, SQLERRM, SQLSTATE);
        END;
        IF failed IS NOT NULL THEN
            EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', hot, hot || '_bound');
            COMMIT;
            RAISE EXCEPTION '%', failed;
        END IF;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- All rows go into one table again.
-- +goose StatementBegin
DO $$
DECLARE
    hot text;
BEGIN
    FOREACH hot IN ARRAY ARRAY['usage', 'adjustments'] LOOP
        CONTINUE WHEN (SELECT relkind FROM pg_class WHERE oid = hot::regclass) <> 'p';
        EXECUTE format('ALTER TABLE %I RENAME TO %I', hot, hot || '_months');
        EXECUTE format('ALTER INDEX %I RENAME TO %I', hot || '_pkey', hot || '_months_pkey');
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING INDEXES INCLUDING STORAGE)', hot, hot || '_months');
        EXECUTE format('INSERT INTO %I SELECT * FROM %I', hot, hot || '_months');
        IF hot = 'usage' THEN
            ALTER TABLE usage SET (fillfactor = 80);
        ELSIF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'adjustments_months'::regclass AND tgname = 'adjustments_open') THEN
            CREATE TRIGGER adjustments_open AFTER INSERT ON adjustments REFERENCING NEW TABLE AS added
                FOR EACH STATEMENT EXECUTE FUNCTION adjustments_open();
        END IF;
        EXECUTE format('DROP TABLE %I', hot || '_months');
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd
