-- What sellers and buyers say on papers, and a series of numbers for each prefix. Each statement may be
-- run again: a run may end between two.

-- +goose NO TRANSACTION
-- +goose Up

-- payment, footer: lines on papers. credit_note_prefix: '' where notes are numbered with the invoices.
-- next_number and next_test_number are those of the prefix.
ALTER TABLE sellers ADD COLUMN IF NOT EXISTS country text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS registration text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS email text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS payment text[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS footer text[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS credit_note_prefix text NOT NULL DEFAULT '';

-- notes: lines on each of the customer's papers.
ALTER TABLE billing_accounts ADD COLUMN IF NOT EXISTS order_reference text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS notes text[] NOT NULL DEFAULT '{}';

-- The next numbers of a seller's series but those of its prefix: of credit notes, and of prefixes that
-- it had before. prefix: as invoices have it, with TEST- of the series test.
CREATE TABLE IF NOT EXISTS seller_numbers (
    seller      text   NOT NULL REFERENCES sellers (key) ON DELETE CASCADE,
    series      text   NOT NULL,
    prefix      text   NOT NULL,
    next_number bigint NOT NULL CHECK (next_number > 0),
    PRIMARY KEY (seller, series, prefix)
);

-- Numbers that a series went on with, or will, where the number before is not given.
CREATE TABLE IF NOT EXISTS seller_skips (
    seller text   NOT NULL REFERENCES sellers (key) ON DELETE CASCADE,
    series text   NOT NULL,
    prefix text   NOT NULL,
    number bigint NOT NULL CHECK (number > 1),
    PRIMARY KEY (seller, series, prefix, number)
);

-- Another prefix goes on with its own numbers: 1, or after the last that it gave. A trigger, since
-- nodes of the version before write sellers, too.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION seller_prefixed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seller_numbers (seller, series, prefix, next_number)
        VALUES (OLD.key, 'live', OLD.prefix, OLD.next_number), (OLD.key, 'test', 'TEST-' || OLD.prefix, OLD.next_test_number)
        ON CONFLICT (seller, series, prefix) DO UPDATE SET next_number = excluded.next_number;
    NEW.next_number := coalesce((SELECT next_number FROM seller_numbers
        WHERE seller = NEW.key AND series = 'live' AND prefix = NEW.prefix), 1);
    NEW.next_test_number := coalesce((SELECT next_number FROM seller_numbers
        WHERE seller = NEW.key AND series = 'test' AND prefix = 'TEST-' || NEW.prefix), 1);
    DELETE FROM seller_numbers WHERE seller = NEW.key
        AND (series, prefix) IN (('live', NEW.prefix), ('test', 'TEST-' || NEW.prefix));
    RETURN NEW;
END $$;
-- The lock of the seller's row, which whoever gives a number has, makes this see all numbers before.
CREATE OR REPLACE FUNCTION invoice_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM invoices i WHERE i.seller = NEW.seller AND i.series = NEW.series AND i.prefix = NEW.prefix AND i.number = NEW.number - 1)
        AND NOT EXISTS (SELECT FROM seller_skips s WHERE s.seller = NEW.seller AND s.series = NEW.series AND s.prefix = NEW.prefix AND s.number = NEW.number) THEN
        RAISE EXCEPTION 'invoices_number_without_gap: % of the series % of seller % does not follow the number before it', NEW.prefix || NEW.number, NEW.series, NEW.seller
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'invoices_number_without_gap';
    END IF;
    RETURN NULL;
END $$;

-- An index that was begun and not ended is of no use.
DO $$
DECLARE
    half record;
BEGIN
    FOR half IN SELECT indexrelid::regclass AS name FROM pg_index WHERE indrelid = 'invoices'::regclass AND NOT indisvalid LOOP
        EXECUTE format('DROP INDEX %s', half.name);
    END LOOP;
END $$;
-- +goose StatementEnd

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS invoices_number_of_prefix ON invoices (seller, series, prefix, number);

-- The constraints of numbers become those of a prefix. No instant is without them. Numbers that were
-- given stay: a prefix that began in the midst of a series goes on from there.
-- +goose StatementBegin
DO $$
BEGIN
    IF (SELECT cardinality(conkey) FROM pg_constraint WHERE conrelid = 'invoices'::regclass AND conname = 'invoices_number_once') = 4 THEN
        DROP INDEX IF EXISTS invoices_number_of_prefix; -- of a run that came later than this
        RETURN;
    END IF;
    ALTER TABLE invoices DROP CONSTRAINT invoices_number_without_gap;
    ALTER TABLE invoices DROP CONSTRAINT invoices_number_once;
    ALTER TABLE invoices ADD CONSTRAINT invoices_number_once UNIQUE USING INDEX invoices_number_of_prefix;
    CREATE TRIGGER invoices_number_without_gap AFTER UPDATE ON invoices FOR EACH ROW
        WHEN (OLD.number IS NULL AND NEW.number <> 1) EXECUTE FUNCTION invoice_follows();
    CREATE TRIGGER seller_prefixed BEFORE UPDATE OF prefix ON sellers
        FOR EACH ROW WHEN (OLD.prefix <> NEW.prefix) EXECUTE FUNCTION seller_prefixed();

    INSERT INTO seller_numbers (seller, series, prefix, next_number)
        SELECT i.seller, i.series, i.prefix, max(i.number) + 1 FROM invoices i JOIN sellers s ON s.key = i.seller
        WHERE i.number IS NOT NULL AND i.prefix <> CASE i.series WHEN 'test' THEN 'TEST-' ELSE '' END || s.prefix
        GROUP BY i.seller, i.series, i.prefix
        ON CONFLICT DO NOTHING;
    INSERT INTO seller_skips (seller, series, prefix, number)
        SELECT i.seller, i.series, i.prefix, i.number FROM invoices i
        WHERE i.number > 1 AND NOT EXISTS (SELECT FROM invoices b
            WHERE b.seller = i.seller AND b.series = i.series AND b.prefix = i.prefix AND b.number = i.number - 1)
        UNION
        SELECT s.key, w.series, w.prefix, w.next FROM sellers s,
            LATERAL (VALUES ('live', s.prefix, s.next_number), ('test', 'TEST-' || s.prefix, s.next_test_number)) AS w (series, prefix, next)
        WHERE w.next > 1 AND NOT EXISTS (SELECT FROM invoices b
            WHERE b.seller = s.key AND b.series = w.series AND b.prefix = w.prefix AND b.number = w.next - 1)
        ON CONFLICT DO NOTHING;
END $$;
-- +goose StatementEnd

-- +goose Down
-- A number that was given stays. So where prefixes have numbers of their own, or one was left out, they
-- keep them, and what sees to that stays. The version before works with it, and so does up again.
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regclass('seller_skips') IS NULL THEN -- a run came this far before
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM seller_skips) OR EXISTS (SELECT FROM seller_numbers WHERE next_number > 1) THEN
        RETURN;
    END IF;
    ALTER TABLE invoices DROP CONSTRAINT invoices_number_once;
    ALTER TABLE invoices ADD CONSTRAINT invoices_number_once UNIQUE (seller, series, number);
    ALTER TABLE invoices ADD CONSTRAINT invoices_number_without_gap FOREIGN KEY (seller, series, previous) REFERENCES invoices (seller, series, number);
    DROP TRIGGER invoices_number_without_gap ON invoices;
    DROP TRIGGER seller_prefixed ON sellers;
    DROP FUNCTION invoice_follows, seller_prefixed;
    DROP TABLE seller_skips, seller_numbers;
END $$;
-- +goose StatementEnd
ALTER TABLE billing_accounts DROP COLUMN IF EXISTS order_reference, DROP COLUMN IF EXISTS notes;
ALTER TABLE sellers DROP COLUMN IF EXISTS country, DROP COLUMN IF EXISTS registration, DROP COLUMN IF EXISTS email,
    DROP COLUMN IF EXISTS payment, DROP COLUMN IF EXISTS footer, DROP COLUMN IF EXISTS credit_note_prefix;
