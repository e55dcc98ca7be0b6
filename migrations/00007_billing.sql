-- Billing: sellers, what customers were on, and their periods. These tables may use all of PostgreSQL.
-- All instants are µs since the Unix epoch, by the customer's clock.
--
-- Lock order of every transaction: open_periods, change_number, counters by key, sellers. The
-- charges, credits and invoices of a customer are under the lock of its row of open_periods.

-- +goose Up

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

-- payment, footer: lines on papers. credit_note_prefix: '' where notes are numbered with the invoices.
-- next_number, next_test_number: of the seller's next invoice, in the series live and test of its prefix.
CREATE TABLE sellers (
    key         text   PRIMARY KEY,
    name        text   NOT NULL,
    address     text[] NOT NULL DEFAULT '{}',
    tax_id      text   NOT NULL DEFAULT '',
    prefix      text   NOT NULL DEFAULT '',
    next_number bigint NOT NULL DEFAULT 1 CHECK (next_number > 0),
    change      bigint NOT NULL,
    next_test_number   bigint NOT NULL DEFAULT 1 CHECK (next_test_number > 0),
    country            text   NOT NULL DEFAULT '',
    registration       text   NOT NULL DEFAULT '',
    email              text   NOT NULL DEFAULT '',
    payment            text[] NOT NULL DEFAULT '{}',
    footer             text[] NOT NULL DEFAULT '{}',
    credit_note_prefix text   NOT NULL DEFAULT ''
);
INSERT INTO sellers (key, name, change) VALUES ('default', '', 0);

-- The next numbers of a seller's series but those of its prefix: of credit notes, and of prefixes that
-- it had before. prefix: as invoices have it, with TEST- of the series test.
CREATE TABLE seller_numbers (
    seller      text   NOT NULL REFERENCES sellers (key) ON DELETE CASCADE,
    series      text   NOT NULL,
    prefix      text   NOT NULL,
    next_number bigint NOT NULL CHECK (next_number > 0),
    PRIMARY KEY (seller, series, prefix)
);

-- Numbers that a series went on with, or will, where the number before is not given.
CREATE TABLE seller_skips (
    seller text   NOT NULL REFERENCES sellers (key) ON DELETE CASCADE,
    series text   NOT NULL,
    prefix text   NOT NULL,
    number bigint NOT NULL CHECK (number > 1),
    PRIMARY KEY (seller, series, prefix, number)
);

-- Sellers that got a name: drafts that are held may wait for it. A row is removed when none does.
CREATE TABLE seller_calls (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seller text   NOT NULL REFERENCES sellers (key) ON DELETE CASCADE
);

-- How a customer is billed. There is a row for each customer that is not anonymous.
-- starts_set_at: when starts_at was written last. currency: fixed when the first period opens.
-- break_from, break_to: billing ended and began again, the last time that it did.
-- ends_with_period: ends_at was asked for as "period_end". written: by PUT …/billing, ever.
-- known_from, known_end: the period that began at known_from was known to end at known_end. ends_at
-- was written since, before the period was open.
-- notes: lines on each of the customer's papers.
-- after_end: what becomes of hits after ends_at: block refuses them, free does not bill them.
-- archived_end: where archiving the customer ended its billing. Nobody uses anything from there on.
-- Null: it is not archived, or its billing had ended before.
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
    change           bigint  NOT NULL,
    known_from       bigint,
    known_end        bigint,
    order_reference  text    NOT NULL DEFAULT '',
    notes            text[]  NOT NULL DEFAULT '{}',
    after_end        text    NOT NULL DEFAULT 'block' CHECK (after_end IN ('block', 'free')),
    archived_end     bigint
);

-- Closed billing periods. Each begins where the one before it in its chain ended: none twice,
-- none skipped, none changed. A new chain begins where billing begins again after an end.
-- prior_end: the end of the customer's period before it, in whatever chain. So all of them are
-- one list in time, and none overlap. It is null for the first.
-- full_start, full_end: the whole period that it was cut from. known_end: the end that was
-- known when it opened. plan_id, version, prices: what it is priced by; prices: {meter: price},
-- the customer's own. base: which base price the period lies in, if that is for more intervals than
-- one, see billing.Base; null: it has a base price of its own.
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
    base        jsonb,
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
-- opening_due: the opening invoice is still to be made. due_at: the earliest of what is to be done.
-- owed_at: billing is over, and since then charges or corrections wait for an extra invoice.
-- blocked: why it could not be done; it is tried again at retry_at (of PostgreSQL's time).
-- busy_since: when somebody else's work on its rows first kept the customer from being done, of
-- PostgreSQL's time. Null: the last try was not kept from it. base: as periods have it.
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
    busy_since  bigint,
    base        jsonb,
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

-- +goose Down
DROP TABLE owed_calls, clock_calls, open_periods, periods, billing_accounts, seller_calls, seller_skips, seller_numbers, sellers,
    customer_prices;
