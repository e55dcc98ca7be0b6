-- Invoices, their lines, and what goes onto them: adjustments and charges. All instants are µs since
-- the Unix epoch, by the customer's clock. What must never change is in 00010_books.sql.

-- +goose Up

-- n: of the period in its chain. Of an extra invoice it is below 0, counted down: no period is stored
-- that it is of.
-- of: the invoice that a credit note or a reissue is about. document: seller and buyer as they
-- were at finalization, taxes, and what does not have a column. digest: SHA-256 of a finalized
-- invoice's content, see assembly.Digest.
-- series: the series that the number is of. A draft is of the series live until it gets its number.
-- clock_id: the test clock that the customer lives by. A customer never changes its clock.
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
    prefix        text,
    subtotal_minor     bigint NOT NULL DEFAULT 0,
    tax_minor          bigint NOT NULL DEFAULT 0,
    total_minor        bigint NOT NULL DEFAULT 0,
    credits_minor      bigint NOT NULL DEFAULT 0,
    amount_due_minor   bigint NOT NULL DEFAULT 0,
    document      jsonb   NOT NULL DEFAULT '{}',
    digest        bytea,
    held          text,
    void_reason   text,
    request       text,
    payload       bigint,
    series        text    NOT NULL DEFAULT 'live' CONSTRAINT invoices_series_known CHECK (series IN ('live', 'test')),
    clock_id      integer REFERENCES test_clocks (id),
    CONSTRAINT invoices_number_once UNIQUE (seller, series, prefix, number),
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
CREATE INDEX invoices_live_period_end ON invoices (period_end, id) WHERE clock_id IS NULL;
CREATE INDEX invoices_clock_period_end ON invoices (clock_id, period_end, id) WHERE clock_id IS NOT NULL;
-- What a void invoice gave back of a base in advance goes on to the next invoice of its customer.
-- So each new invoice looks for the customer's void ones, which are few.
CREATE INDEX invoices_void ON invoices (customer_id, chain, n) WHERE status = 'void';
-- Drafts that are held while their seller has no name.
CREATE INDEX invoices_nameless ON invoices ((document #>> '{seller,key}'), customer_id)
    WHERE status = 'draft' AND held IS NOT NULL AND document #>> '{seller,name}' = '';

-- tiers: as billing.Line shows them. part: billing.Part, if the line covers no whole period. whole_minor: what the whole costs. of_invoice: what a correction or credit corrects.
-- billed_before: billing.Before, of a correction.
-- unit_price: of model per_unit. package_size, package_price: of model package. Both as the price
-- says them, in major units. Tiers have theirs in tiers. applied: minimum or maximum, if that is the
-- amount.
-- base_invoice, base_line: of unused, the line of base in advance that it gives back. Null in other
-- lines.
-- level_by, level: of a line of a level meter's usage, see plans.Price. level has 6 digits after the
-- point.
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
    billed_before jsonb,
    unit_price    text,
    package_size  bigint,
    package_price text,
    applied       text,
    base_invoice  uuid,
    base_line     integer,
    level_by      text,
    level         text,
    part          jsonb,
    whole_minor   bigint,
    PRIMARY KEY (invoice_id, n),
    CHECK ((kind = 'correction' AND of_line IS NULL) = (billed_before IS NOT NULL))
);
CREATE INDEX invoice_lines_of ON invoice_lines (of_invoice) WHERE of_invoice IS NOT NULL;
CREATE INDEX invoice_lines_base ON invoice_lines (base_invoice) WHERE base_invoice IS NOT NULL;

-- Which adjustments an invoice takes: those of its lines of usage since it was finalized, those
-- of corrections since its draft was made. The line is that of the meter whose from_at and to_at
-- hold the hour. A correction whose amount would be 0 has no line, and its adjustments are here
-- all the same.
-- cost, at, reason: what the adjustment said when it was taken. An adjustment never changes.
CREATE TABLE line_adjustments (
    invoice_id uuid    NOT NULL REFERENCES invoices (id),
    customer   bigint  NOT NULL,
    meter      integer NOT NULL,
    hour       bigint  NOT NULL,
    key        uuid    NOT NULL,
    cost       bigint  NOT NULL,
    at         bigint  NOT NULL,
    reason     text    NOT NULL,
    PRIMARY KEY (invoice_id, meter, hour, key)
);
CREATE INDEX line_adjustments_of ON line_adjustments (customer, meter, hour, key);

-- Adjustments that no invoice has taken. A row says where to look, and never what is billed. That is
-- what the engine has, less what invoices that are not void took. So a row too many bills nothing.
-- The engine adds rows in the transactions of hits: there is no foreign key, for which those would
-- wait for whoever writes the customer.
CREATE TABLE open_adjustments (
    customer bigint  NOT NULL,
    hour     bigint  NOT NULL,
    meter    integer NOT NULL,
    key      uuid    NOT NULL,
    PRIMARY KEY (customer, hour, meter, key)
);

-- A row of open_adjustments is deleted when an invoice takes its adjustment. It comes back when a draft
-- gives the adjustment up, or its invoice becomes void, unless another invoice has it. A correction of
-- nothing has no line, so what it corrects may be reissued, and counts the same. The lock of the
-- customer's billing keeps these apart.
-- +goose StatementBegin
CREATE FUNCTION adjustment_taken() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM open_adjustments WHERE ctid = ANY (ARRAY(
        SELECT q.ctid FROM added a, LATERAL (
            SELECT ctid FROM open_adjustments WHERE customer = a.customer AND hour = a.hour AND meter = a.meter AND key = a.key OFFSET 0) q));
    RETURN NULL;
END $$;
CREATE FUNCTION adjustment_given_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO open_adjustments (customer, hour, meter, key)
        SELECT OLD.customer, OLD.hour, OLD.meter, OLD.key WHERE NOT EXISTS (
            SELECT FROM line_adjustments l JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'
            WHERE l.customer = OLD.customer AND l.meter = OLD.meter AND l.hour = OLD.hour AND l.key = OLD.key OFFSET 0)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE FUNCTION invoice_void() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO open_adjustments (customer, hour, meter, key)
        SELECT customer, hour, meter, key FROM line_adjustments t WHERE invoice_id = NEW.id AND NOT EXISTS (
            SELECT FROM line_adjustments l JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'
            WHERE l.customer = t.customer AND l.meter = t.meter AND l.hour = t.hour AND l.key = t.key OFFSET 0)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE FUNCTION invoice_on_clock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.clock_id := (SELECT test_clock_id FROM customers WHERE id = NEW.customer_id);
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER adjustment_taken AFTER INSERT ON line_adjustments REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION adjustment_taken();
CREATE TRIGGER adjustment_given_up AFTER DELETE ON line_adjustments FOR EACH ROW EXECUTE FUNCTION adjustment_given_up();
CREATE TRIGGER invoice_void AFTER UPDATE OF status ON invoices
    FOR EACH ROW WHEN (NEW.status = 'void' AND OLD.status <> 'void') EXECUTE FUNCTION invoice_void();
CREATE TRIGGER invoice_on_clock BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION invoice_on_clock();

-- One-off charges: a line of the next invoice. Ids are unique for ever. seq: of charges of one instant,
-- the earlier has the lower.
CREATE TABLE charges (
    customer_id  bigint NOT NULL REFERENCES customers (id),
    id           text   NOT NULL,
    description  text   NOT NULL,
    amount_minor bigint NOT NULL,
    currency     text   NOT NULL,
    at           bigint NOT NULL,
    payload      bigint NOT NULL,
    invoice_id   uuid   REFERENCES invoices (id),
    seq          bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (customer_id, id)
);
CREATE INDEX charges_unclaimed ON charges (customer_id) WHERE invoice_id IS NULL;
CREATE INDEX charges_invoice ON charges (invoice_id) WHERE invoice_id IS NOT NULL;

-- +goose Down
DROP TABLE charges, open_adjustments, line_adjustments, invoice_lines, invoices;
DROP FUNCTION invoice_on_clock, invoice_void, adjustment_given_up, adjustment_taken;
