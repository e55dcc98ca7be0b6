-- Payments are rows of their own: of a finalized invoice the status alone changes. It may be run again.
-- Nodes of the version before note a payment by the status, and know no parts. The triggers write what
-- they leave out, and refuse what would lose money.

-- +goose NO TRANSACTION
-- +goose Up

-- What was paid of an invoice, n from 1. kind: payment, or credits that were applied later. at: by the
-- customer's clock. reversed_at: from then on it counts no more. request, payload: the id under which it
-- was made once, and what was asked for.
CREATE TABLE IF NOT EXISTS payments (
    invoice_id       uuid    NOT NULL REFERENCES invoices (id),
    n                integer NOT NULL CHECK (n > 0),
    customer_id      bigint  NOT NULL,
    kind             text    NOT NULL CHECK (kind IN ('payment', 'credits')),
    amount_minor     bigint  NOT NULL CHECK (amount_minor > 0),
    reference        text,
    at               bigint  NOT NULL,
    request          text,
    payload          bigint,
    reversed_at      bigint,
    reversal_reason  text,
    reversal_request text,
    reversal_payload bigint,
    PRIMARY KEY (invoice_id, n)
);
CREATE UNIQUE INDEX IF NOT EXISTS payments_request ON payments (customer_id, request) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS payments_reversal ON payments (customer_id, reversal_request) WHERE reversal_request IS NOT NULL;

-- Where the money of a credit note went: off what was open of the invoice, into a carried credit, out
-- by the seller, and back to the credits that had paid. Together they are the note's total.
CREATE TABLE IF NOT EXISTS note_money (
    note_id        uuid   PRIMARY KEY REFERENCES invoices (id),
    invoice_id     uuid   NOT NULL REFERENCES invoices (id),
    open_minor     bigint NOT NULL CHECK (open_minor >= 0),
    carried_minor  bigint NOT NULL CHECK (carried_minor >= 0),
    outside_minor  bigint NOT NULL CHECK (outside_minor >= 0),
    returned_minor bigint NOT NULL CHECK (returned_minor >= 0)
);
CREATE INDEX IF NOT EXISTS note_money_invoice ON note_money (invoice_id);

-- Invoices that are finalized: a row each, while something is open. due_at: from when on it is overdue. That
-- is the invoice's due_at, or the instant of a later reversal, which opened it again. told_at: when it was told that the
-- invoice is overdue, µs by the customer's clock. Null: it was not yet.
CREATE TABLE IF NOT EXISTS unpaid_invoices (
    invoice_id  uuid    PRIMARY KEY REFERENCES invoices (id),
    customer_id bigint  NOT NULL,
    clock_id    integer,
    due_at      bigint  NOT NULL,
    period_end  bigint  NOT NULL,
    told_at     bigint
);
CREATE INDEX IF NOT EXISTS unpaid_invoices_due ON unpaid_invoices (due_at) WHERE clock_id IS NULL AND told_at IS NULL;
CREATE INDEX IF NOT EXISTS unpaid_invoices_clock_due ON unpaid_invoices (clock_id, due_at) WHERE clock_id IS NOT NULL AND told_at IS NULL;
CREATE INDEX IF NOT EXISTS unpaid_invoices_told ON unpaid_invoices (told_at) WHERE clock_id IS NULL AND told_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS unpaid_invoices_period_end ON unpaid_invoices (period_end, invoice_id);
CREATE INDEX IF NOT EXISTS unpaid_invoices_clock ON unpaid_invoices (clock_id, period_end, invoice_id) WHERE clock_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS unpaid_invoices_customer ON unpaid_invoices (customer_id, period_end, invoice_id);

-- paid_invoice, paid_n: the payment that the entry is of. Of what a credit note returned, paid_invoice is
-- the credited invoice, and paid_n is null where the credit was applied at finalization. request, payload,
-- reason: of what was withdrawn.
ALTER TABLE credit_entries ADD COLUMN IF NOT EXISTS paid_invoice uuid, ADD COLUMN IF NOT EXISTS paid_n integer,
    ADD COLUMN IF NOT EXISTS request text, ADD COLUMN IF NOT EXISTS payload bigint, ADD COLUMN IF NOT EXISTS reason text;
-- +goose StatementBegin
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'credit_entries_kinds') THEN
        ALTER TABLE credit_entries ADD CONSTRAINT credit_entries_kinds CHECK (kind IN ('granted', 'applied', 'returned', 'expired', 'withdrawn')) NOT VALID;
        ALTER TABLE credit_entries DROP CONSTRAINT IF EXISTS credit_entries_kind_check;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = 'credit_entries_payment') THEN
        ALTER TABLE credit_entries ADD CONSTRAINT credit_entries_payment FOREIGN KEY (paid_invoice, paid_n) REFERENCES payments (invoice_id, n) NOT VALID;
    END IF;
END $$;
-- +goose StatementEnd
ALTER TABLE credit_entries VALIDATE CONSTRAINT credit_entries_kinds;
ALTER TABLE credit_entries VALIDATE CONSTRAINT credit_entries_payment;
DROP INDEX CONCURRENTLY IF EXISTS credit_entries_paid;
CREATE INDEX CONCURRENTLY credit_entries_paid ON credit_entries (paid_invoice) WHERE paid_invoice IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS credit_entries_request;
CREATE UNIQUE INDEX CONCURRENTLY credit_entries_request ON credit_entries (customer_id, request) WHERE request IS NOT NULL;

-- +goose StatementBegin
-- What is open of an invoice: due, less what notes took of it, less what was paid.
CREATE OR REPLACE FUNCTION invoice_open(of_invoice uuid) RETURNS bigint LANGUAGE sql AS $$
    SELECT i.amount_due_minor
        - (SELECT coalesce(sum(open_minor), 0) FROM note_money WHERE invoice_id = of_invoice)::bigint
        - (SELECT coalesce(sum(amount_minor), 0) FROM payments WHERE invoice_id = of_invoice AND reversed_at IS NULL)::bigint
    FROM invoices i WHERE i.id = of_invoice
$$;

-- Writes what the version before left out: where the money of notes went, what was paid, and what is
-- unpaid. When something was paid is paid_at, else the audit trail may know it, else it is taken for
-- the finalization. A note took of what was open until then, and others later took what was paid.
CREATE OR REPLACE FUNCTION fill_payments() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    right_now bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    INSERT INTO note_money (note_id, invoice_id, open_minor, carried_minor, outside_minor, returned_minor)
    SELECT f.id, f.of, f.taken, CASE WHEN f.carried THEN f.total - f.taken ELSE 0 END, CASE WHEN f.carried THEN 0 ELSE f.total - f.taken END, 0
    FROM (
        SELECT n.id, n.of, n.total, n.carried, least(n.total, greatest(0, n.takes - n.earlier)) AS taken
        FROM (
            SELECT k.id, k.of, k.carried, -k.total_minor AS total,
                (coalesce(sum(-k.total_minor) OVER (PARTITION BY k.of ORDER BY k.made_at, k.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))::bigint AS earlier,
                greatest(0, CASE
                    WHEN i.paid_minor IS NOT NULL THEN i.amount_due_minor - i.paid_minor
                    WHEN i.status = 'finalized' THEN i.amount_due_minor
                    WHEN p.at IS NOT NULL THEN least(i.amount_due_minor, coalesce(sum(-k.total_minor) FILTER (WHERE k.made_at < p.at) OVER (PARTITION BY k.of), 0)::bigint)
                    WHEN i.status = 'credited' AND NOT bool_or(k.carried) OVER (PARTITION BY k.of) THEN i.amount_due_minor
                    ELSE 0
                END) AS takes
            FROM (
                SELECT c.*, EXISTS (SELECT FROM credits r WHERE r.customer_id = c.customer_id AND r.id = 'carried:' || c.id) AS carried
                FROM invoices c WHERE c.kind = 'credit_note' AND c.status <> 'draft') k
            JOIN invoices i ON i.id = k.of
            LEFT JOIN LATERAL (
                SELECT (extract(epoch FROM min(a.at)) * 1000000)::bigint AS at FROM audit a
                WHERE i.paid_minor IS NULL AND i.clock_id IS NULL AND a.subject = 'invoices/' || i.id AND a.action = 'pay') p ON true
        ) n
    ) f
    ON CONFLICT DO NOTHING;

    INSERT INTO payments (invoice_id, n, customer_id, kind, amount_minor, reference, at)
    SELECT i.id, 1 + coalesce((SELECT max(n) FROM payments p WHERE p.invoice_id = i.id), 0), i.customer_id, 'payment', o.open, i.reference,
        coalesce(i.paid_at, (
            SELECT (extract(epoch FROM min(a.at)) * 1000000)::bigint FROM audit a
            WHERE i.clock_id IS NULL AND a.subject = 'invoices/' || i.id AND a.action = 'pay'), i.finalized_at)
    FROM invoices i, LATERAL (
        SELECT i.amount_due_minor - (SELECT coalesce(sum(open_minor), 0) FROM note_money m WHERE m.invoice_id = i.id)::bigint
            - (SELECT coalesce(sum(amount_minor), 0) FROM payments p WHERE p.invoice_id = i.id AND p.reversed_at IS NULL)::bigint AS open) o
    WHERE i.status IN ('paid', 'credited') AND i.kind <> 'credit_note' AND i.amount_due_minor > 0 AND o.open > 0;

    INSERT INTO unpaid_invoices (invoice_id, customer_id, clock_id, due_at, period_end, told_at)
    SELECT i.id, i.customer_id, i.clock_id, d.due_at, i.period_end, CASE WHEN d.due_at <= coalesce(t.now, right_now) THEN coalesce(t.now, right_now) END
    FROM invoices i LEFT JOIN test_clocks t ON t.id = i.clock_id, LATERAL (SELECT coalesce(i.due_at, i.finalized_at) AS due_at) d
    WHERE i.status = 'finalized' AND i.kind <> 'credit_note'
    ON CONFLICT DO NOTHING;
END $$;

-- Finalized invoices and their lines never change, but for the next status. Beside it only why an invoice
-- is void may be set, and by nodes of the version before what a payment was. What is paid is open again
-- only where a payment was reversed. What becomes void has no payment that stands.
CREATE OR REPLACE FUNCTION invoice_stands() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    may_change text[] := ARRAY['status', 'previous'];
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'an invoice begins as a draft' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be deleted', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.status <> NEW.status AND NOT (CASE
        WHEN (OLD.status, NEW.status) IN (('draft', 'finalized'), ('draft', 'paid'), ('finalized', 'paid'), ('finalized', 'credited'), ('paid', 'credited')) THEN true
        WHEN (OLD.status, NEW.status) IN (('paid', 'finalized'), ('credited', 'finalized')) THEN invoice_open(OLD.id) > 0
        WHEN (OLD.status, NEW.status) IN (('finalized', 'void'), ('paid', 'void')) THEN
            OLD.kind <> 'credit_note' AND (OLD.status = 'finalized' OR OLD.total_minor > 0)
            AND NOT EXISTS (SELECT FROM payments p WHERE p.invoice_id = OLD.id AND p.reversed_at IS NULL)
        ELSE false
    END) THEN
        RAISE EXCEPTION 'an invoice that is % cannot become %', OLD.status, NEW.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.status = 'draft' THEN
        RETURN NEW;
    END IF;
    IF OLD.status <> NEW.status THEN
        may_change := may_change || CASE NEW.status
            WHEN 'paid' THEN ARRAY['reference', 'paid_at', 'paid_minor'] WHEN 'void' THEN ARRAY['void_reason'] END;
    END IF;
    IF to_jsonb(OLD) - may_change IS DISTINCT FROM to_jsonb(NEW) - may_change THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be changed', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- Keeps what follows from a status, for nodes of both versions. A node of the version before notes a
-- payment by the status alone, and says of a note nothing of what was open.
CREATE OR REPLACE FUNCTION invoice_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_open bigint;
BEGIN
    IF NEW.kind = 'credit_note' THEN
        IF NOT EXISTS (SELECT FROM note_money WHERE note_id = NEW.id) THEN
            is_open := least(-NEW.total_minor, greatest(0, invoice_open(NEW.of)));
            INSERT INTO note_money (note_id, invoice_id, open_minor, carried_minor, outside_minor, returned_minor)
            SELECT NEW.id, NEW.of, is_open, CASE WHEN c.there THEN -NEW.total_minor - is_open ELSE 0 END, CASE WHEN c.there THEN 0 ELSE -NEW.total_minor - is_open END, 0
            FROM (SELECT EXISTS (SELECT FROM credits WHERE customer_id = NEW.customer_id AND id = 'carried:' || NEW.id) AS there) c;
            UPDATE invoices SET status = 'paid' WHERE id = NEW.of AND status = 'finalized' AND invoice_open(id) <= 0;
        END IF;
        RETURN NULL;
    END IF;
    IF NEW.status = 'finalized' THEN
        INSERT INTO unpaid_invoices (invoice_id, customer_id, clock_id, due_at, period_end)
        SELECT NEW.id, NEW.customer_id, NEW.clock_id, greatest(coalesce(NEW.due_at, NEW.finalized_at), max(p.reversed_at)), NEW.period_end
        FROM payments p WHERE p.invoice_id = NEW.id;
    ELSE
        DELETE FROM unpaid_invoices WHERE invoice_id = NEW.id;
    END IF;
    IF NEW.status = 'paid' AND OLD.status = 'finalized' THEN
        is_open := invoice_open(NEW.id);
        IF is_open > 0 THEN
            INSERT INTO payments (invoice_id, n, customer_id, kind, amount_minor, reference, at)
            SELECT NEW.id, 1 + coalesce(max(n), 0), NEW.customer_id, 'payment', is_open, NEW.reference, coalesce(NEW.paid_at, NEW.finalized_at)
            FROM payments WHERE invoice_id = NEW.id;
        END IF;
    END IF;
    RETURN NULL;
END $$;

-- A payment is reversed once, and else never changes.
CREATE OR REPLACE FUNCTION payment_stands() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    may_change text[] := CASE WHEN TG_OP = 'UPDATE' THEN ARRAY['reversed_at', 'reversal_reason', 'reversal_request', 'reversal_payload'] END;
BEGIN
    IF TG_OP = 'DELETE' OR OLD.reversed_at IS NOT NULL OR NEW.reversed_at IS NULL
        OR to_jsonb(OLD) - may_change IS DISTINCT FROM to_jsonb(NEW) - may_change THEN
        RAISE EXCEPTION 'payment % of invoice % cannot be changed', OLD.n, OLD.invoice_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION note_money_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'where the money of credit note % went cannot be changed', OLD.note_id USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd

-- Most is filled in while nodes write invoices. The rest, and the triggers, come while none does.
SELECT fill_payments();
-- +goose StatementBegin
DO $$
BEGIN
    LOCK TABLE invoices IN SHARE ROW EXCLUSIVE MODE;
    PERFORM fill_payments();
    CREATE OR REPLACE TRIGGER invoice_moves AFTER UPDATE OF status ON invoices FOR EACH ROW
        WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION invoice_moves();
    CREATE OR REPLACE TRIGGER payment_stands BEFORE UPDATE OR DELETE ON payments FOR EACH ROW EXECUTE FUNCTION payment_stands();
    CREATE OR REPLACE TRIGGER payments_stand BEFORE TRUNCATE ON payments EXECUTE FUNCTION books_stand();
    CREATE OR REPLACE TRIGGER note_money_stands BEFORE UPDATE OR DELETE ON note_money FOR EACH ROW EXECUTE FUNCTION note_money_stands();
    CREATE OR REPLACE TRIGGER note_money_stand BEFORE TRUNCATE ON note_money EXECUTE FUNCTION books_stand();
    -- Of what notes took all that was open, nothing is to be paid.
    UPDATE invoices SET status = 'paid' WHERE status = 'finalized' AND kind <> 'credit_note'
        AND id IN (SELECT invoice_id FROM note_money) AND invoice_open(id) <= 0;
END $$;
-- +goose StatementEnd
DROP FUNCTION fill_payments;

-- +goose Down
-- The version before knows no parts, no reversals, no credits that pay later, and nothing that notes alone
-- made paid. Where there are such rows, the tables stay.
-- +goose StatementBegin
DO $$
BEGIN
    DROP TRIGGER IF EXISTS invoice_moves ON invoices;
    IF to_regclass('payments') IS NOT NULL THEN
        DROP TRIGGER IF EXISTS payment_stands ON payments;
        DROP TRIGGER IF EXISTS payments_stand ON payments;
        DROP TRIGGER IF EXISTS note_money_stands ON note_money;
        DROP TRIGGER IF EXISTS note_money_stand ON note_money;
    END IF;
END $$;
CREATE OR REPLACE FUNCTION invoice_stands() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    may_change text[] := ARRAY['status', 'previous'];
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'an invoice begins as a draft' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be deleted', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF (OLD.status, NEW.status) NOT IN (('draft', 'finalized'), ('draft', 'paid'),
        ('finalized', 'paid'), ('finalized', 'void'), ('finalized', 'credited'), ('paid', 'credited')) AND OLD.status <> NEW.status THEN
        RAISE EXCEPTION 'an invoice that is % cannot become %', OLD.status, NEW.status USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.status = 'draft' THEN
        RETURN NEW;
    END IF;
    IF OLD.status <> NEW.status THEN
        may_change := may_change || CASE NEW.status
            WHEN 'paid' THEN ARRAY['reference', 'paid_at', 'paid_minor'] WHEN 'void' THEN ARRAY['void_reason'] END;
    END IF;
    IF to_jsonb(OLD) - may_change IS DISTINCT FROM to_jsonb(NEW) - may_change THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be changed', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
DROP FUNCTION IF EXISTS invoice_moves, payment_stands, note_money_stands, invoice_open, fill_payments;
DROP TABLE IF EXISTS unpaid_invoices;
-- +goose StatementBegin
DO $$
BEGIN
    IF to_regclass('payments') IS NULL
        OR EXISTS (SELECT FROM payments WHERE kind = 'credits' OR n > 1 OR reversed_at IS NOT NULL OR request IS NOT NULL)
        OR EXISTS (SELECT FROM note_money WHERE returned_minor > 0)
        OR EXISTS (SELECT FROM note_money m JOIN invoices i ON i.id = m.invoice_id WHERE m.open_minor > 0 AND i.status = 'paid' AND i.paid_minor IS NULL)
        OR EXISTS (SELECT FROM invoices i JOIN payments p ON p.invoice_id = i.id WHERE i.status = 'finalized')
        OR EXISTS (SELECT FROM credit_entries WHERE kind = 'withdrawn' OR paid_invoice IS NOT NULL) THEN
        RETURN;
    END IF;
    ALTER TABLE credit_entries DROP COLUMN paid_invoice, DROP COLUMN paid_n, DROP COLUMN request, DROP COLUMN payload, DROP COLUMN reason;
    ALTER TABLE credit_entries DROP CONSTRAINT credit_entries_kinds;
    ALTER TABLE credit_entries ADD CONSTRAINT credit_entries_kind_check CHECK (kind IN ('granted', 'applied', 'returned', 'expired'));
    DROP TABLE note_money, payments;
END $$;
-- +goose StatementEnd
