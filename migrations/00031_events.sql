-- Events: what happened to customers, plans and invoices, in an order that readers can follow.

-- +goose Up

-- Written in the transaction of what it tells of. A row waits here until that is committed and the
-- numberer moves it to events. seq: the order of writing, which is that of rows of one numbering.
-- at: µs by the customer's clock. customer: no foreign key, so that a hit's writes lock no customer.
-- test_clock: the customer's, by key.
CREATE TABLE outbox (
    seq        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type       text   NOT NULL,
    at         bigint NOT NULL,
    customer   bigint,
    test_clock text,
    data       jsonb  NOT NULL
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
CREATE INDEX events_customer ON events (customer, id) WHERE customer IS NOT NULL;

-- The last id that was given. Whoever gives ids has the row locked.
CREATE TABLE event_number (
    number bigint  NOT NULL,
    one    boolean PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO event_number (number) VALUES (0);

-- +goose Down

DROP TABLE event_number, events, outbox;
