-- Adjustments are the engine's. Billing keeps copies of what its invoices took of them, and a queue of
-- those that no invoice has taken. Each statement may be run again: a run may end between two. No two
-- tables are locked at once, since a closing that runs has rows of both.

-- +goose NO TRANSACTION
-- +goose Up

-- cost, at, reason: what the adjustment said when it was taken. An adjustment never changes.
ALTER TABLE line_adjustments ADD COLUMN IF NOT EXISTS cost bigint, ADD COLUMN IF NOT EXISTS at bigint, ADD COLUMN IF NOT EXISTS reason text;

-- Adjustments that no invoice has taken. A row says where to look, and never what is billed. That is
-- what the engine has, less what invoices that are not void took. So a row too many bills nothing.
-- The engine adds rows in the transactions of hits: there is no foreign key, for which those would
-- wait for whoever writes the customer.
CREATE TABLE IF NOT EXISTS open_adjustments (
    customer bigint  NOT NULL,
    hour     bigint  NOT NULL,
    meter    integer NOT NULL,
    key      uuid    NOT NULL,
    PRIMARY KEY (customer, hour, meter, key)
);

-- Triggers, since nodes of the version before take adjustments and give them up, too. A row is
-- deleted when an invoice takes its adjustment. It comes back when a draft gives the adjustment up, or
-- its invoice becomes void, unless another invoice has it. A correction of nothing has no line, so what
-- it corrects may be reissued, and counts the same. The lock of the customer's billing keeps these apart.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION adjustment_taken() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM open_adjustments WHERE ctid = ANY (ARRAY(
        SELECT q.ctid FROM added a, LATERAL (
            SELECT ctid FROM open_adjustments WHERE customer = a.customer AND hour = a.hour AND meter = a.meter AND key = a.key OFFSET 0) q));
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION adjustment_given_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO open_adjustments (customer, hour, meter, key)
        SELECT OLD.customer, OLD.hour, OLD.meter, OLD.key WHERE NOT EXISTS (
            SELECT FROM line_adjustments l JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'
            WHERE l.customer = OLD.customer AND l.meter = OLD.meter AND l.hour = OLD.hour AND l.key = OLD.key OFFSET 0)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION invoice_void() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO open_adjustments (customer, hour, meter, key)
        SELECT customer, hour, meter, key FROM line_adjustments t WHERE invoice_id = NEW.id AND NOT EXISTS (
            SELECT FROM line_adjustments l JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'
            WHERE l.customer = t.customer AND l.meter = t.meter AND l.hour = t.hour AND l.key = t.key OFFSET 0)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER adjustment_taken AFTER INSERT ON line_adjustments REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION adjustment_taken();
CREATE OR REPLACE TRIGGER adjustment_given_up AFTER DELETE ON line_adjustments FOR EACH ROW EXECUTE FUNCTION adjustment_given_up();
CREATE OR REPLACE TRIGGER invoice_void AFTER UPDATE OF status ON invoices
    FOR EACH ROW WHEN (NEW.status = 'void' AND OLD.status <> 'void') EXECUTE FUNCTION invoice_void();

-- All below is for nodes of the version before, and for the rows that 00020 fills in. It goes a release
-- later. Then the columns become NOT NULL, and line_adjustment_stands is of each UPDATE again.

-- Copies that are left out may be filled in, also those of final invoices. Nothing else of them changes.
CREATE OR REPLACE TRIGGER line_adjustment_stays BEFORE DELETE ON line_adjustments FOR EACH ROW EXECUTE FUNCTION invoice_line_stands();
CREATE OR REPLACE TRIGGER line_adjustment_stands BEFORE UPDATE ON line_adjustments FOR EACH ROW
    WHEN (num_nonnulls(OLD.cost, OLD.at, OLD.reason) > 0
        OR (OLD.invoice_id, OLD.customer, OLD.meter, OLD.hour, OLD.key) <> (NEW.invoice_id, NEW.customer, NEW.meter, NEW.hour, NEW.key))
    EXECUTE FUNCTION invoice_line_stands();

-- adjustment_shard is model.Shard: the last 10 bits of the finalizer of SplitMix64. A product is taken
-- modulo 2^64, and its upper half stands for the numbers below 0.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION adjustment_shard(customer bigint) RETURNS smallint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    x bigint := customer # ((customer >> 30) & 17179869183);
    p numeric := mod(x::numeric * 13787848793156543929, 18446744073709551616);
BEGIN
    x := p - CASE WHEN p >= 9223372036854775808 THEN 18446744073709551616 WHEN p < -9223372036854775808 THEN -18446744073709551616 ELSE 0 END;
    x := x # ((x >> 27) & 137438953471);
    p := mod(x::numeric * 10723151780598845931, 18446744073709551616);
    x := p - CASE WHEN p >= 9223372036854775808 THEN 18446744073709551616 WHEN p < -9223372036854775808 THEN -18446744073709551616 ELSE 0 END;
    RETURN (x # (x >> 31)) & 1023;
END $$;
CREATE OR REPLACE FUNCTION line_adjustment_copied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT a.cost, a.at, a.reason INTO NEW.cost, NEW.at, NEW.reason FROM adjustments a
        WHERE a.shard = adjustment_shard(NEW.customer) AND a.customer = NEW.customer AND a.meter = NEW.meter AND a.hour = NEW.hour AND a.key = NEW.key;
    RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION adjustments_open() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO open_adjustments (customer, hour, meter, key) SELECT customer, hour, meter, key FROM added ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE OR REPLACE TRIGGER line_adjustment_copied BEFORE INSERT ON line_adjustments
    FOR EACH ROW WHEN (NEW.cost IS NULL) EXECUTE FUNCTION line_adjustment_copied();

-- A hot table has no triggers. This one is for the upgrade alone. A server with Citus refuses it on a table that is
-- distributed: there nodes of the version before must not run beside this one.
-- +goose StatementBegin
DO $$
DECLARE
    distributed boolean := false;
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = ''adjustments''::regclass)' INTO distributed;
    END IF;
    IF NOT distributed THEN
        CREATE OR REPLACE TRIGGER adjustments_open AFTER INSERT ON adjustments REFERENCING NEW TABLE AS added
            FOR EACH STATEMENT EXECUTE FUNCTION adjustments_open();
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER IF EXISTS adjustments_open ON adjustments;
DROP TRIGGER IF EXISTS line_adjustment_copied ON line_adjustments;
CREATE OR REPLACE TRIGGER line_adjustment_stands BEFORE UPDATE OR DELETE ON line_adjustments FOR EACH ROW EXECUTE FUNCTION invoice_line_stands();
DROP TRIGGER IF EXISTS line_adjustment_stays ON line_adjustments;
DROP TRIGGER IF EXISTS invoice_void ON invoices;
DROP TRIGGER IF EXISTS adjustment_given_up ON line_adjustments;
DROP TRIGGER IF EXISTS adjustment_taken ON line_adjustments;
DROP FUNCTION IF EXISTS adjustments_open, line_adjustment_copied, adjustment_shard, invoice_void, adjustment_given_up, adjustment_taken;
DROP TABLE IF EXISTS open_adjustments;
ALTER TABLE line_adjustments DROP COLUMN IF EXISTS reason, DROP COLUMN IF EXISTS at, DROP COLUMN IF EXISTS cost;
