-- Credits and payments. All instants are µs since the Unix epoch, by the customer's clock. What must
-- never change is in 00010_books.sql.

-- +goose Up

-- What was paid of an invoice, n from 1. kind: payment, or credits that were applied later. at: by the
-- customer's clock. reversed_at: from then on it counts no more. request, payload: the id under which it
-- was made once, and what was asked for.
CREATE TABLE payments (
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
CREATE UNIQUE INDEX payments_request ON payments (customer_id, request) WHERE request IS NOT NULL;
CREATE UNIQUE INDEX payments_reversal ON payments (customer_id, reversal_request) WHERE reversal_request IS NOT NULL;

-- Where the money of a credit note went: off what was open of the invoice, into a carried credit, out
-- by the seller, and back to the credits that had paid. Together they are the note's total.
CREATE TABLE note_money (
    note_id        uuid   PRIMARY KEY REFERENCES invoices (id),
    invoice_id     uuid   NOT NULL REFERENCES invoices (id),
    open_minor     bigint NOT NULL CHECK (open_minor >= 0),
    carried_minor  bigint NOT NULL CHECK (carried_minor >= 0),
    outside_minor  bigint NOT NULL CHECK (outside_minor >= 0),
    returned_minor bigint NOT NULL CHECK (returned_minor >= 0)
);
CREATE INDEX note_money_invoice ON note_money (invoice_id);

-- Invoices that are finalized: a row each, while something is open. due_at: from when on it is overdue. That
-- is the invoice's due_at, or the instant of a later reversal, which opened it again. told_at: when it was told that the
-- invoice is overdue, µs by the customer's clock. Null: it was not yet.
CREATE TABLE unpaid_invoices (
    invoice_id  uuid    PRIMARY KEY REFERENCES invoices (id),
    customer_id bigint  NOT NULL,
    clock_id    integer,
    due_at      bigint  NOT NULL,
    period_end  bigint  NOT NULL,
    told_at     bigint
);
CREATE INDEX unpaid_invoices_due ON unpaid_invoices (due_at) WHERE clock_id IS NULL AND told_at IS NULL;
CREATE INDEX unpaid_invoices_clock_due ON unpaid_invoices (clock_id, due_at) WHERE clock_id IS NOT NULL AND told_at IS NULL;
CREATE INDEX unpaid_invoices_told ON unpaid_invoices (told_at) WHERE clock_id IS NULL AND told_at IS NOT NULL;
CREATE INDEX unpaid_invoices_period_end ON unpaid_invoices (period_end, invoice_id);
CREATE INDEX unpaid_invoices_clock ON unpaid_invoices (clock_id, period_end, invoice_id) WHERE clock_id IS NOT NULL;
CREATE INDEX unpaid_invoices_customer ON unpaid_invoices (customer_id, period_end, invoice_id);

-- left_minor: the sum of its entries.
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

-- paid_invoice, paid_n: the payment that the entry is of. Of what a credit note returned, paid_invoice is
-- the credited invoice, and paid_n is null where the credit was applied at finalization. request, payload,
-- reason: of what was withdrawn.
CREATE TABLE credit_entries (
    customer_id  bigint NOT NULL,
    credit_id    text   NOT NULL,
    n            integer NOT NULL CHECK (n > 0),
    kind         text   NOT NULL CONSTRAINT credit_entries_kinds CHECK (kind IN ('granted', 'applied', 'returned', 'expired', 'withdrawn')),
    amount_minor bigint NOT NULL,
    invoice_id   uuid   REFERENCES invoices (id),
    at           bigint NOT NULL,
    paid_invoice uuid,
    paid_n       integer,
    request      text,
    payload      bigint,
    reason       text,
    PRIMARY KEY (customer_id, credit_id, n),
    FOREIGN KEY (customer_id, credit_id) REFERENCES credits (customer_id, id),
    CONSTRAINT credit_entries_payment FOREIGN KEY (paid_invoice, paid_n) REFERENCES payments (invoice_id, n)
);
CREATE INDEX credit_entries_invoice ON credit_entries (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX credit_entries_paid ON credit_entries (paid_invoice) WHERE paid_invoice IS NOT NULL;
CREATE UNIQUE INDEX credit_entries_request ON credit_entries (customer_id, request) WHERE request IS NOT NULL;

-- +goose Down
DROP TABLE credit_entries, credits, unpaid_invoices, note_money, payments;
