-- Papers: customers on test clocks are numbered in a series of their own and are listed apart, and
-- an invoice waits for its seller's name. Each statement may be run again: a run may end between two.

-- +goose NO TRANSACTION
-- +goose Up

-- series: the series that the number is of. Nodes of the version before give numbers of the series
-- live only, and so a draft is of that one until it gets its number.
-- clock_id: the test clock that the customer lives by. A customer never changes its clock.
ALTER TABLE invoices ADD COLUMN IF NOT EXISTS series text NOT NULL DEFAULT 'live',
    ADD COLUMN IF NOT EXISTS clock_id integer REFERENCES test_clocks (id);

-- next_number is that of the series live, and next_test_number that of the series test.
ALTER TABLE sellers ADD COLUMN IF NOT EXISTS next_test_number bigint NOT NULL DEFAULT 1 CHECK (next_test_number > 0);

-- Sellers that got a name: drafts that are held may wait for it. A row is removed when none does.
CREATE TABLE IF NOT EXISTS seller_calls (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seller text   NOT NULL REFERENCES sellers (key) ON DELETE CASCADE
);

-- Triggers, since nodes of the version before write these rows, too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION invoice_on_clock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.clock_id := (SELECT test_clock_id FROM customers WHERE id = NEW.customer_id);
    RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION seller_named() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seller_calls (seller) VALUES (NEW.key);
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER invoice_on_clock BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION invoice_on_clock();
CREATE OR REPLACE TRIGGER seller_named AFTER UPDATE OF name ON sellers
    FOR EACH ROW WHEN (OLD.name = '' AND NEW.name <> '') EXECUTE FUNCTION seller_named();

-- Finalized invoices are not changed by this, but for the new column.
-- +goose StatementBegin
DO $$
DECLARE
    half record;
BEGIN
    ALTER TABLE invoices DISABLE TRIGGER invoice_stands;
    UPDATE invoices i SET clock_id = c.test_clock_id FROM customers c
        WHERE c.id = i.customer_id AND c.test_clock_id IS NOT NULL AND i.clock_id IS NULL;
    ALTER TABLE invoices ENABLE TRIGGER invoice_stands;
    -- An index that was begun and not ended is of no use.
    FOR half IN SELECT indexrelid::regclass AS name FROM pg_index WHERE indrelid = 'invoices'::regclass AND NOT indisvalid LOOP
        EXECUTE format('DROP INDEX %s', half.name);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE INDEX CONCURRENTLY IF NOT EXISTS invoices_live_period_end ON invoices (period_end, id) WHERE clock_id IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS invoices_clock_period_end ON invoices (clock_id, period_end, id) WHERE clock_id IS NOT NULL;
-- Drafts that are held while their seller has no name.
CREATE INDEX CONCURRENTLY IF NOT EXISTS invoices_nameless ON invoices ((document #>> '{seller,key}'), customer_id)
    WHERE status = 'draft' AND held IS NOT NULL AND document #>> '{seller,name}' = '';
-- Live numbers that begin as those of test clocks do. No new ones come.
CREATE INDEX CONCURRENTLY IF NOT EXISTS invoices_live_as_test ON invoices (seller, prefix)
    WHERE series = 'live' AND starts_with(prefix, 'TEST-');
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS invoices_number_in_series ON invoices (seller, series, number);

-- The constraints of numbers become those of a series. No instant is without them.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'invoices_series_known') THEN
        ALTER TABLE invoices ADD CONSTRAINT invoices_series_known CHECK (series IN ('live', 'test')) NOT VALID;
    END IF;
    IF (SELECT cardinality(conkey) FROM pg_constraint WHERE conname = 'invoices_number_once') = 2 THEN
        ALTER TABLE invoices DROP CONSTRAINT invoices_number_without_gap;
        ALTER TABLE invoices DROP CONSTRAINT invoices_number_once;
        ALTER TABLE invoices ADD CONSTRAINT invoices_number_once UNIQUE USING INDEX invoices_number_in_series;
        ALTER TABLE invoices ADD CONSTRAINT invoices_number_without_gap
            FOREIGN KEY (seller, series, previous) REFERENCES invoices (seller, series, number) NOT VALID;
    ELSE
        DROP INDEX IF EXISTS invoices_number_in_series; -- of a run that came later than this
    END IF;
END $$;
-- +goose StatementEnd
ALTER TABLE invoices VALIDATE CONSTRAINT invoices_series_known;
ALTER TABLE invoices VALIDATE CONSTRAINT invoices_number_without_gap;

-- +goose Down
-- The version before knows no draft that waits for a name. Those that do are due at once.
WITH freed AS (
    UPDATE invoices SET finalize_at = made_at, held = NULL WHERE status = 'draft' AND finalize_at = 9223372036854775807
    RETURNING customer_id
), due AS (
    UPDATE open_periods SET due_at = 0 WHERE customer_id IN (SELECT customer_id FROM freed) RETURNING clock_id
)
INSERT INTO clock_calls (clock_id) SELECT DISTINCT clock_id FROM due WHERE clock_id IS NOT NULL;

DROP TRIGGER IF EXISTS seller_named ON sellers;
DROP TRIGGER IF EXISTS invoice_on_clock ON invoices;
DROP FUNCTION IF EXISTS seller_named, invoice_on_clock;
DROP TABLE IF EXISTS seller_calls;
DROP INDEX IF EXISTS invoices_nameless, invoices_live_as_test;
ALTER TABLE invoices DROP COLUMN IF EXISTS clock_id;

-- A number that was given stays. So where one is of the series test, the series stay as they are.
-- The version before works with them. Where there is no column, a run came this far before.
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'invoices'::regclass AND attname = 'series' AND NOT attisdropped) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM invoices WHERE series <> 'live') THEN
        RETURN;
    END IF;
    ALTER TABLE invoices DROP CONSTRAINT invoices_number_without_gap;
    ALTER TABLE invoices DROP CONSTRAINT invoices_number_once;
    ALTER TABLE invoices ADD CONSTRAINT invoices_number_once UNIQUE (seller, number);
    ALTER TABLE invoices ADD CONSTRAINT invoices_number_without_gap FOREIGN KEY (seller, previous) REFERENCES invoices (seller, number);
    ALTER TABLE invoices DROP COLUMN series;
    ALTER TABLE sellers DROP COLUMN next_test_number;
END $$;
-- +goose StatementEnd
