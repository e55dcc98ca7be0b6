-- Lines say what they were priced by, invoices when they were paid, and charges of one instant keep
-- the order in which they came. All of it is empty in rows of before, and in those that nodes of the
-- version before write. Down may have left the columns where they are.

-- +goose Up

-- unit_price: of model per_unit. package_size, package_price: of model package. Both as the price
-- says them, in major units. Tiers have theirs in tiers. applied: minimum or maximum, if that is the
-- amount.
ALTER TABLE invoice_lines ADD COLUMN IF NOT EXISTS unit_price text, ADD COLUMN IF NOT EXISTS package_size bigint, ADD COLUMN IF NOT EXISTS package_price text, ADD COLUMN IF NOT EXISTS applied text;

-- digest_form: see assembly.Digest. It is 1 of drafts, so that a node of the version before, which
-- writes digests of form 1 and not this column, may finalize any draft.
-- paid_at, paid_minor: when it was paid, and how much was open then. Null of what is not paid, of
-- credit notes, and where a node of the version before noted the payment.
ALTER TABLE invoices ADD COLUMN IF NOT EXISTS digest_form smallint NOT NULL DEFAULT 1, ADD COLUMN IF NOT EXISTS paid_at bigint, ADD COLUMN IF NOT EXISTS paid_minor bigint;

-- seq: of charges of one instant, the earlier has the lower. A default that is added to a column
-- that is there fills in no rows.
CREATE SEQUENCE IF NOT EXISTS charges_seq;
ALTER TABLE charges ADD COLUMN IF NOT EXISTS seq bigint;
ALTER TABLE charges ALTER COLUMN seq SET DEFAULT nextval('charges_seq');
ALTER SEQUENCE charges_seq OWNED BY charges.seq;

-- As before, and a payment may set when and how much.
-- +goose StatementBegin
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

-- +goose Down
-- +goose StatementBegin
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
        may_change := may_change || CASE NEW.status WHEN 'paid' THEN 'reference' WHEN 'void' THEN 'void_reason' END;
    END IF;
    IF to_jsonb(OLD) - may_change IS DISTINCT FROM to_jsonb(NEW) - may_change THEN
        RAISE EXCEPTION 'invoice % is finalized and cannot be changed', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- Digests of form 2 are of what these columns say. So where one was given, the columns stay as they
-- are. The version before does not look at them.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM invoices WHERE digest_form > 1) THEN
        RETURN;
    END IF;
    ALTER TABLE charges DROP COLUMN seq;
    ALTER TABLE invoices DROP COLUMN paid_minor, DROP COLUMN paid_at, DROP COLUMN digest_form;
    ALTER TABLE invoice_lines DROP COLUMN applied, DROP COLUMN package_price, DROP COLUMN package_size, DROP COLUMN unit_price;
END $$;
-- +goose StatementEnd
