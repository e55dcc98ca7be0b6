-- What stands: finalized invoices, closed periods, payments, and numbers without gaps. What follows from
-- an invoice's status is written here, too.

-- +goose Up

-- +goose StatementBegin
-- What is open of an invoice: due, less what notes took of it, less what was paid.
CREATE FUNCTION invoice_open(of_invoice uuid) RETURNS bigint LANGUAGE sql AS $$
    SELECT i.amount_due_minor
        - (SELECT coalesce(sum(open_minor), 0) FROM note_money WHERE invoice_id = of_invoice)::bigint
        - (SELECT coalesce(sum(amount_minor), 0) FROM payments WHERE invoice_id = of_invoice AND reversed_at IS NULL)::bigint
    FROM invoices i WHERE i.id = of_invoice
$$;

-- Finalized invoices and their lines never change, but for the next status. Beside it only why an invoice
-- is void may be set. What is paid or credited has nothing open, and is open again only where a payment
-- was reversed. What becomes void has no payment that stands.
CREATE FUNCTION invoice_stands() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    may_change text[] := ARRAY['status'];
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'an invoice begins as a draft' USING ERRCODE = 'restrict_violation';
    END IF;
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be deleted', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    IF OLD.status <> NEW.status AND NOT (CASE
        WHEN (OLD.status, NEW.status) IN (('draft', 'finalized'), ('draft', 'paid')) THEN true
        WHEN (OLD.status, NEW.status) IN (('finalized', 'paid'), ('finalized', 'credited'), ('paid', 'credited')) THEN invoice_open(OLD.id) <= 0
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
    IF OLD.status <> NEW.status AND NEW.status = 'void' THEN
        may_change := may_change || ARRAY['void_reason'];
    END IF;
    IF to_jsonb(OLD) - may_change IS DISTINCT FROM to_jsonb(NEW) - may_change THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be changed', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- Keeps the rows of what is unpaid as the status is. A credit note has said where its money went.
CREATE FUNCTION invoice_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.kind = 'credit_note' THEN
        IF NOT EXISTS (SELECT FROM note_money WHERE note_id = NEW.id) THEN
            RAISE EXCEPTION 'credit note % does not say where its money went', NEW.id USING ERRCODE = 'restrict_violation';
        END IF;
    ELSIF NEW.status = 'finalized' THEN
        INSERT INTO unpaid_invoices (invoice_id, customer_id, clock_id, due_at, period_end)
        SELECT NEW.id, NEW.customer_id, NEW.clock_id, greatest(coalesce(NEW.due_at, NEW.finalized_at), max(p.reversed_at)), NEW.period_end
        FROM payments p WHERE p.invoice_id = NEW.id;
    ELSE
        DELETE FROM unpaid_invoices WHERE invoice_id = NEW.id;
    END IF;
    RETURN NULL;
END $$;

-- The locks make lines wait for who is about to finalize their invoice. New lines are looked at
-- all together.
CREATE FUNCTION invoice_line_stands() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_now text;
BEGIN
    SELECT status INTO is_now FROM invoices i WHERE i.id = OLD.invoice_id FOR KEY SHARE;
    IF TG_OP = 'UPDATE' AND NEW.invoice_id <> OLD.invoice_id OR is_now <> 'draft' THEN
        RAISE EXCEPTION 'invoice % is finalized and its lines cannot be changed', OLD.invoice_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN coalesce(NEW, OLD);
END $$;
CREATE FUNCTION invoice_lines_begin() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    concerned uuid[] := (SELECT array_agg(DISTINCT invoice_id) FROM added);
    final     uuid;
BEGIN
    SELECT id INTO final FROM (
        SELECT id, status FROM invoices WHERE id = ANY (concerned) FOR KEY SHARE) i
    WHERE status <> 'draft' LIMIT 1;
    IF final IS NOT NULL THEN
        RAISE EXCEPTION 'invoice % is finalized and its lines cannot be changed', final USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION period_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a closed billing period cannot be changed' USING ERRCODE = 'restrict_violation';
END $$;
CREATE FUNCTION books_stand() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'table % holds finalized invoices or closed periods and cannot be emptied', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
-- A payment is reversed once, and else never changes.
CREATE FUNCTION payment_stands() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    may_change text[] := CASE WHEN TG_OP = 'UPDATE' THEN ARRAY['reversed_at', 'reversal_reason', 'reversal_request', 'reversal_payload'] END;
BEGIN
    IF TG_OP = 'DELETE' OR OLD.reversed_at IS NOT NULL OR NEW.reversed_at IS NULL
        OR to_jsonb(OLD) - may_change IS DISTINCT FROM to_jsonb(NEW) - may_change THEN
        RAISE EXCEPTION 'payment % of invoice % cannot be changed', OLD.n, OLD.invoice_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION note_money_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'where the money of credit note % went cannot be changed', OLD.note_id USING ERRCODE = 'restrict_violation';
END $$;
-- The lock of the seller's row, which whoever gives a number has, makes this see all numbers before.
CREATE FUNCTION invoice_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM invoices i WHERE i.seller = NEW.seller AND i.series = NEW.series AND i.prefix = NEW.prefix AND i.number = NEW.number - 1)
        AND NOT EXISTS (SELECT FROM seller_skips s WHERE s.seller = NEW.seller AND s.series = NEW.series AND s.prefix = NEW.prefix AND s.number = NEW.number) THEN
        RAISE EXCEPTION 'invoices_number_without_gap: % of the series % of seller % does not follow the number before it', NEW.prefix || NEW.number, NEW.series, NEW.seller
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'invoices_number_without_gap';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER invoice_begins BEFORE INSERT ON invoices FOR EACH ROW WHEN (NEW.status <> 'draft') EXECUTE FUNCTION invoice_stands();
CREATE TRIGGER invoice_stands BEFORE UPDATE ON invoices FOR EACH ROW EXECUTE FUNCTION invoice_stands();
CREATE TRIGGER invoice_stays BEFORE DELETE ON invoices FOR EACH ROW WHEN (OLD.status <> 'draft') EXECUTE FUNCTION invoice_stands();
CREATE TRIGGER invoice_line_stands BEFORE UPDATE OR DELETE ON invoice_lines FOR EACH ROW EXECUTE FUNCTION invoice_line_stands();
CREATE TRIGGER line_adjustment_stands BEFORE UPDATE OR DELETE ON line_adjustments FOR EACH ROW EXECUTE FUNCTION invoice_line_stands();
CREATE TRIGGER invoice_lines_begin AFTER INSERT ON invoice_lines REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION invoice_lines_begin();
CREATE TRIGGER line_adjustments_begin AFTER INSERT ON line_adjustments REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION invoice_lines_begin();
CREATE TRIGGER period_stands BEFORE UPDATE OR DELETE ON periods FOR EACH ROW EXECUTE FUNCTION period_stands();
CREATE TRIGGER invoices_stand BEFORE TRUNCATE ON invoices EXECUTE FUNCTION books_stand();
CREATE TRIGGER invoice_lines_stand BEFORE TRUNCATE ON invoice_lines EXECUTE FUNCTION books_stand();
CREATE TRIGGER line_adjustments_stand BEFORE TRUNCATE ON line_adjustments EXECUTE FUNCTION books_stand();
CREATE TRIGGER periods_stand BEFORE TRUNCATE ON periods EXECUTE FUNCTION books_stand();
CREATE TRIGGER invoices_number_without_gap AFTER UPDATE ON invoices FOR EACH ROW
    WHEN (OLD.number IS NULL AND NEW.number <> 1) EXECUTE FUNCTION invoice_follows();
CREATE TRIGGER invoice_moves AFTER UPDATE OF status ON invoices FOR EACH ROW
    WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION invoice_moves();
CREATE TRIGGER payment_stands BEFORE UPDATE OR DELETE ON payments FOR EACH ROW EXECUTE FUNCTION payment_stands();
CREATE TRIGGER payments_stand BEFORE TRUNCATE ON payments EXECUTE FUNCTION books_stand();
CREATE TRIGGER note_money_stands BEFORE UPDATE OR DELETE ON note_money FOR EACH ROW EXECUTE FUNCTION note_money_stands();
CREATE TRIGGER note_money_stand BEFORE TRUNCATE ON note_money EXECUTE FUNCTION books_stand();

-- +goose Down
DROP TRIGGER invoice_begins ON invoices;
DROP TRIGGER invoice_stands ON invoices;
DROP TRIGGER invoice_stays ON invoices;
DROP TRIGGER invoices_stand ON invoices;
DROP TRIGGER invoices_number_without_gap ON invoices;
DROP TRIGGER invoice_moves ON invoices;
DROP TRIGGER invoice_line_stands ON invoice_lines;
DROP TRIGGER invoice_lines_begin ON invoice_lines;
DROP TRIGGER invoice_lines_stand ON invoice_lines;
DROP TRIGGER line_adjustment_stands ON line_adjustments;
DROP TRIGGER line_adjustments_begin ON line_adjustments;
DROP TRIGGER line_adjustments_stand ON line_adjustments;
DROP TRIGGER period_stands ON periods;
DROP TRIGGER periods_stand ON periods;
DROP TRIGGER payment_stands ON payments;
DROP TRIGGER payments_stand ON payments;
DROP TRIGGER note_money_stands ON note_money;
DROP TRIGGER note_money_stand ON note_money;
DROP FUNCTION invoice_stands, invoice_line_stands, invoice_lines_begin, invoice_moves, invoice_follows, period_stands, payment_stands,
    note_money_stands, books_stand, invoice_open;
