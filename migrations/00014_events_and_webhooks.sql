-- Events: what happened to customers, plans and invoices, in an order that readers can follow, and the
-- URLs that they are sent to.

-- +goose Up

-- Written in the transaction of what it tells of. A row waits here until that is committed and the
-- numberer moves it to events. written_at: when it was written, by PostgreSQL's clock, µs; seq: the order of
-- rows that were written at one instant. Events are shown in the order of both. at: µs by the customer's clock. customer: no foreign key, so that a hit's writes lock no customer.
-- test_clock: the customer's, by key.
CREATE TABLE outbox (
    written_at bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    seq        bigint GENERATED ALWAYS AS IDENTITY,
    type       text   NOT NULL,
    at         bigint NOT NULL,
    customer   bigint,
    test_clock text,
    data       jsonb  NOT NULL,
    PRIMARY KEY (written_at, seq)
);

-- Events that readers see. id: no lower one is ever added, so who has read up to one misses none.
-- The customer's key is not here: it is read from customers, where an erased one has another.
CREATE TABLE events (
    id          bigint      PRIMARY KEY,
    type        text        NOT NULL,
    at          bigint      NOT NULL,
    customer    bigint,
    test_clock  text,
    data        jsonb       NOT NULL,
    numbered_at timestamptz NOT NULL
);
CREATE INDEX events_type ON events (type, id);
-- For replays, which ask for events by the time at which they were shown.
CREATE INDEX events_numbered ON events (numbered_at);
CREATE INDEX events_customer ON events (customer, id) WHERE customer IS NOT NULL;

-- The last id that was given. Whoever gives ids has the row locked.
CREATE TABLE event_number (
    number bigint  NOT NULL,
    one    boolean PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO event_number (number) VALUES (0);

-- types: of events that are sent; empty for all. secret: signs what is sent. old_secret signs, too, until
-- old_until. failing_since: since when nothing could be delivered.
CREATE TABLE webhooks (
    id            text        PRIMARY KEY,
    url           text        NOT NULL,
    types         text[]      NOT NULL,
    secret        bytea       NOT NULL,
    old_secret    bytea,
    old_until     timestamptz,
    created_at    timestamptz NOT NULL,
    failing_since timestamptz,
    disabled_at   timestamptz,
    disabled_for  text
);

-- An event that is to be sent to a webhook. due_at: when it is tried, or tried again where nobody says
-- what became of the last attempt. since: from when on it is retried for a day.
CREATE TABLE deliveries (
    event    bigint      NOT NULL,
    webhook  text        NOT NULL,
    state    text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'dead')),
    attempts integer     NOT NULL DEFAULT 0,
    since    timestamptz NOT NULL,
    due_at   timestamptz NOT NULL,
    last_at  timestamptz,
    status   integer,
    error    text,
    PRIMARY KEY (event, webhook)
);
CREATE INDEX deliveries_due ON deliveries (webhook, due_at) WHERE state = 'waiting';
CREATE INDEX deliveries_webhook ON deliveries (webhook, event);

-- +goose Down
DROP TABLE deliveries, webhooks, event_number, events, outbox;
