-- Billing: what customers were on, their periods, invoices and credits. These tables may use
-- all of PostgreSQL. All instants are µs since the Unix epoch, by the customer's clock.
--
-- Lock order of every transaction: open_periods, change_number, counters by key, sellers. The
-- charges, credits and invoices of a customer are under the lock of its row of open_periods.

-- +goose Up

-- cuts: boundaries of billing periods beside those of the anchor, ascending: starts_at,
-- trial_ends_at, ends_at. Hits read them, so that usage hours are cut there, too.
ALTER TABLE customers ADD COLUMN cuts bigint[] NOT NULL DEFAULT '{}';

-- Append-only: what prices a customer's periods. A row counts for the periods that start at
-- from_at or later, until a row of a newer change does. at: when it was written.
CREATE TABLE customer_terms (
    customer_id    bigint  NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    change         bigint  NOT NULL,
    from_at        bigint  NOT NULL,
    at             bigint  NOT NULL,
    plan_id        integer NOT NULL REFERENCES plans (id),
    joined_version integer NOT NULL,
    pinned_version integer,
    timezone       text    NOT NULL,
    billing_anchor text    NOT NULL,
    PRIMARY KEY (customer_id, change)
);

-- Append-only: prices of a customer's own. price null: the plan's counts again.
CREATE TABLE customer_prices (
    customer_id bigint NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    meter       text   NOT NULL,
    change      bigint NOT NULL,
    from_at     bigint NOT NULL,
    at          bigint NOT NULL,
    price       jsonb,
    PRIMARY KEY (customer_id, meter, change)
);

-- next_number is that of the seller's next finalized invoice.
CREATE TABLE sellers (
    key         text   PRIMARY KEY,
    name        text   NOT NULL,
    address     text[] NOT NULL DEFAULT '{}',
    tax_id      text   NOT NULL DEFAULT '',
    prefix      text   NOT NULL DEFAULT '',
    next_number bigint NOT NULL DEFAULT 1 CHECK (next_number > 0),
    change      bigint NOT NULL
);
INSERT INTO sellers (key, name, change) VALUES ('default', '', 0);

-- How a customer is billed. There is a row for each customer that is not anonymous.
-- starts_set_at: when starts_at was written last. currency: fixed when the first period opens.
-- break_from, break_to: billing ended and began again, the last time that it did.
-- ends_with_period: ends_at was asked for as "period_end". written: by PUT …/billing, ever.
CREATE TABLE billing_accounts (
    customer_id      bigint  PRIMARY KEY REFERENCES customers (id) ON DELETE CASCADE,
    currency         text,
    starts_at        bigint  NOT NULL,
    starts_set_at    bigint  NOT NULL,
    trial_ends_at    bigint,
    ends_at          bigint,
    ends_with_period boolean NOT NULL DEFAULT false,
    break_from       bigint,
    break_to         bigint,
    seller           text    NOT NULL DEFAULT 'default' REFERENCES sellers (key),
    buyer            jsonb   NOT NULL DEFAULT '{}',
    taxes            jsonb   NOT NULL DEFAULT '[]',
    due_days         integer NOT NULL DEFAULT 14,
    written          boolean NOT NULL DEFAULT false,
    change           bigint  NOT NULL
);

-- Closed billing periods. Each begins where the one before it in its chain ended: none twice,
-- none skipped, none changed. A new chain begins where billing begins again after an end.
-- prior_end: the end of the customer's period before it, in whatever chain. So all of them are
-- one list in time, and none overlap. It is null for the first.
-- full_start, full_end: the whole period that it was cut from. known_end: the end that was
-- known when it opened. plan_id, version, prices: what it is priced by; prices: {meter: price},
-- the customer's own.
CREATE TABLE periods (
    customer_id bigint  NOT NULL REFERENCES customers (id),
    chain       integer NOT NULL CHECK (chain >= 0),
    n           integer NOT NULL CHECK (n >= 0),
    before      integer GENERATED ALWAYS AS (nullif(n, 0) - 1) STORED,
    start_at    bigint  NOT NULL,
    end_at      bigint  NOT NULL CHECK (end_at > start_at),
    prior_end   bigint,
    full_start  bigint  NOT NULL CHECK (full_start <= start_at),
    full_end    bigint  NOT NULL CHECK (full_end >= end_at),
    known_end   bigint  NOT NULL CHECK (known_end > start_at),
    trial       boolean NOT NULL,
    plan_id     integer NOT NULL,
    version     integer NOT NULL,
    prices      jsonb   NOT NULL,
    closed_at   bigint  NOT NULL,
    PRIMARY KEY (customer_id, chain, n),
    UNIQUE (customer_id, chain, n, end_at),
    UNIQUE (customer_id, end_at),
    CONSTRAINT periods_begin_once UNIQUE (customer_id, start_at),
    CONSTRAINT periods_one_after_another UNIQUE NULLS NOT DISTINCT (customer_id, prior_end),
    CONSTRAINT periods_apart CHECK (prior_end <= start_at),
    CONSTRAINT periods_follow FOREIGN KEY (customer_id, prior_end) REFERENCES periods (customer_id, end_at),
    CONSTRAINT periods_follow_in_chain FOREIGN KEY (customer_id, chain, before, start_at) REFERENCES periods (customer_id, chain, n, end_at),
    FOREIGN KEY (plan_id, version) REFERENCES plan_versions (plan_id, version)
);

-- One row per customer that is billed: its open period, and when anything is due. Its lock is
-- the lock of the customer's billing.
-- start_at null: no period is open, since billing is over; drafts may be left.
-- to_begin: it begins later than it was written here; then it is read again what prices it.
-- opening_due: the opening invoice is still to be made. due_at: the earliest of what is to be
-- done. owed_at: billing is over, and since then charges or corrections wait for an extra invoice. blocked: why it could not be done; it is tried again at retry_at (of PostgreSQL's time).
CREATE TABLE open_periods (
    customer_id bigint  PRIMARY KEY REFERENCES customers (id) ON DELETE CASCADE,
    clock_id    integer REFERENCES test_clocks (id),
    chain       integer NOT NULL DEFAULT 0,
    n           integer NOT NULL DEFAULT 0,
    start_at    bigint,
    end_at      bigint,
    full_start  bigint,
    full_end    bigint,
    known_end   bigint,
    trial       boolean NOT NULL DEFAULT false,
    plan_id     integer,
    version     integer,
    prices      jsonb   NOT NULL DEFAULT '{}',
    to_begin    boolean NOT NULL DEFAULT false,
    opening_due boolean NOT NULL DEFAULT false,
    owed_at     bigint,
    due_at      bigint  NOT NULL,
    blocked     text,
    retry_at    bigint  NOT NULL DEFAULT 0,
    FOREIGN KEY (plan_id, version) REFERENCES plan_versions (plan_id, version),
    CHECK ((start_at IS NULL) = (end_at IS NULL)),
    CHECK (end_at > start_at)
);
CREATE INDEX open_periods_due ON open_periods (due_at) WHERE clock_id IS NULL;
CREATE INDEX open_periods_blocked ON open_periods (customer_id) WHERE blocked IS NOT NULL;
CREATE INDEX open_periods_clock_due ON open_periods (clock_id, due_at) WHERE clock_id IS NOT NULL;

-- Test clocks whose customers have, or may have, something due: what sets a clock, or changes
-- what is due of a customer on one, adds a row. Rows are removed when nothing is due any more.
CREATE TABLE clock_calls (
    id       bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    clock_id integer NOT NULL REFERENCES test_clocks (id)
);

-- Adjustments of customers whose billing ends or has ended, of units in an hour of before. No lock is taken,
-- and no key refers to others: the engine adds rows in the transactions of hits. Rows are removed when owed_at
-- was written for them. at: of the adjustment.
CREATE TABLE owed_calls (
    id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id bigint  NOT NULL,
    hour        bigint  NOT NULL,
    meter       integer NOT NULL,
    at          bigint  NOT NULL
);

-- n: of the period in its chain. Of an extra invoice it is below 0, counted down: no period is stored that it
-- is of.
-- of: the invoice that a credit note or a reissue is about. document: seller and buyer as they
-- were at finalization, taxes, and what does not have a column. digest: SHA-256 of a finalized
-- invoice's content, see assembly.Digest. previous: the number before it in the seller's series.
CREATE TABLE invoices (
    id            uuid    PRIMARY KEY,
    customer_id   bigint  NOT NULL REFERENCES customers (id),
    kind          text    NOT NULL CHECK (kind IN ('period', 'opening', 'credit_note')),
    status        text    NOT NULL CHECK (status IN ('draft', 'finalized', 'paid', 'void', 'credited')),
    currency      text    NOT NULL,
    chain         integer NOT NULL,
    n             integer NOT NULL,
    period_start  bigint  NOT NULL,
    period_end    bigint  NOT NULL,
    plan_id       integer NOT NULL,
    price_version integer NOT NULL,
    of            uuid    REFERENCES invoices (id),
    made_at       bigint  NOT NULL,
    finalize_at   bigint  NOT NULL,
    finalized_at  bigint,
    due_at        bigint,
    seller        text    REFERENCES sellers (key),
    number        bigint,
    previous      bigint  GENERATED ALWAYS AS (nullif(number, 1) - 1) STORED,
    prefix        text,
    subtotal_minor     bigint NOT NULL DEFAULT 0,
    tax_minor          bigint NOT NULL DEFAULT 0,
    total_minor        bigint NOT NULL DEFAULT 0,
    credits_minor      bigint NOT NULL DEFAULT 0,
    amount_due_minor   bigint NOT NULL DEFAULT 0,
    document      jsonb   NOT NULL DEFAULT '{}',
    digest        bytea,
    held          text,
    reference     text,
    void_reason   text,
    request       text,
    payload       bigint,
    CONSTRAINT invoices_number_once UNIQUE (seller, number),
    CONSTRAINT invoices_number_without_gap FOREIGN KEY (seller, previous) REFERENCES invoices (seller, number),
    CONSTRAINT invoices_draft_without_number CHECK ((status = 'draft') = (number IS NULL)),
    CONSTRAINT invoices_numbered_whole CHECK (num_nulls(seller, number, prefix, finalized_at, digest) IN (0, 5))
);
CREATE UNIQUE INDEX invoices_one_of_a_kind ON invoices (customer_id, chain, n, kind)
    WHERE kind <> 'credit_note' AND status <> 'void';
CREATE UNIQUE INDEX invoices_request ON invoices (customer_id, request) WHERE request IS NOT NULL;
CREATE INDEX invoices_of ON invoices (of) WHERE of IS NOT NULL;
CREATE INDEX invoices_customer ON invoices (customer_id, period_end, id);
CREATE INDEX invoices_drafts ON invoices (customer_id, finalize_at) WHERE status = 'draft';
CREATE INDEX invoices_period_end ON invoices (period_end, id);

-- tiers: as billing.Line shows them. of_invoice: what a correction or credit corrects.
-- billed_before: of a correction, the quantity that was billed before it.
CREATE TABLE invoice_lines (
    invoice_id   uuid    NOT NULL REFERENCES invoices (id),
    n            integer NOT NULL CHECK (n > 0),
    kind         text    NOT NULL CHECK (kind IN ('usage', 'base', 'unused', 'correction', 'charge', 'minimum')),
    meter        text,
    description  text    NOT NULL,
    from_at      bigint  NOT NULL,
    to_at        bigint  NOT NULL,
    quantity     bigint  NOT NULL,
    included     bigint  NOT NULL,
    plan_version integer NOT NULL,
    tiers        jsonb   NOT NULL,
    amount_minor bigint  NOT NULL,
    of_invoice   uuid    REFERENCES invoices (id),
    of_line      integer,
    billed_before bigint,
    PRIMARY KEY (invoice_id, n)
);
CREATE INDEX invoice_lines_of ON invoice_lines (of_invoice) WHERE of_invoice IS NOT NULL;

-- Which adjustments an invoice takes: those of its lines of usage since it was finalized, those
-- of corrections since its draft was made. The line is that of the meter whose from_at and to_at
-- hold the hour. A correction whose amount would be 0 has no line, and its adjustments are here
-- all the same.
CREATE TABLE line_adjustments (
    invoice_id uuid    NOT NULL REFERENCES invoices (id),
    customer   bigint  NOT NULL,
    meter      integer NOT NULL,
    hour       bigint  NOT NULL,
    key        uuid    NOT NULL,
    PRIMARY KEY (invoice_id, meter, hour, key)
);
CREATE INDEX line_adjustments_of ON line_adjustments (customer, meter, hour, key);

-- Finalized invoices and their lines never change, but for the next status. Beside it only the
-- reference of a payment, or why an invoice is void, may be set. The column previous follows from
-- number, and is not there yet when the trigger runs.
-- +goose StatementBegin
CREATE FUNCTION invoice_stands() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- One-off charges: a line of the next invoice. Ids are unique for ever.
CREATE TABLE charges (
    customer_id  bigint NOT NULL REFERENCES customers (id),
    id           text   NOT NULL,
    description  text   NOT NULL,
    amount_minor bigint NOT NULL,
    currency     text   NOT NULL,
    at           bigint NOT NULL,
    payload      bigint NOT NULL,
    invoice_id   uuid   REFERENCES invoices (id),
    PRIMARY KEY (customer_id, id)
);
CREATE INDEX charges_unclaimed ON charges (customer_id) WHERE invoice_id IS NULL;
CREATE INDEX charges_invoice ON charges (invoice_id) WHERE invoice_id IS NOT NULL;

-- left_minor = amount − applied − expired + returned, the sum of its entries.
CREATE TABLE credits (
    customer_id  bigint   NOT NULL REFERENCES customers (id),
    id           text     NOT NULL,
    kind         text     NOT NULL CHECK (kind IN ('promotional', 'paid', 'carried')),
    amount_minor bigint   NOT NULL CHECK (amount_minor > 0),
    left_minor   bigint   NOT NULL CHECK (left_minor BETWEEN 0 AND amount_minor),
    currency     text     NOT NULL,
    priority     smallint NOT NULL CHECK (priority BETWEEN 0 AND 100),
    expires_at   bigint,
    at           bigint   NOT NULL,
    seq          bigint   GENERATED ALWAYS AS IDENTITY,
    payload      bigint   NOT NULL,
    PRIMARY KEY (customer_id, id)
);
CREATE TABLE credit_entries (
    customer_id  bigint NOT NULL,
    credit_id    text   NOT NULL,
    n            integer NOT NULL CHECK (n > 0),
    kind         text   NOT NULL CHECK (kind IN ('granted', 'applied', 'returned', 'expired')),
    amount_minor bigint NOT NULL,
    invoice_id   uuid   REFERENCES invoices (id),
    at           bigint NOT NULL,
    PRIMARY KEY (customer_id, credit_id, n),
    FOREIGN KEY (customer_id, credit_id) REFERENCES credits (customer_id, id)
);
CREATE INDEX credit_entries_invoice ON credit_entries (invoice_id) WHERE invoice_id IS NOT NULL;

-- +goose Down
DROP TABLE credit_entries, credits, charges, line_adjustments, invoice_lines, invoices, owed_calls, clock_calls, open_periods, periods, billing_accounts,
    sellers, customer_prices, customer_terms;
DROP FUNCTION invoice_stands, invoice_line_stands, invoice_lines_begin, period_stands, books_stand;
ALTER TABLE customers DROP COLUMN cuts;
