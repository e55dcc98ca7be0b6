-- Operations that are done exactly once, reservations, and units that come back. These
-- tables are hot, as counters and usage are.

-- +goose Up

-- What was done under an id, in the same transaction. Three tables take turns, each for
-- as long as ids are kept, so that the oldest is emptied at once (see Rotator); an id is
-- looked up in all three. The lock on the customer's counter keeps two writers of one id
-- apart, whichever table they write to.
-- key:      128 bits of SHA-256 of the kind of operation and the client's id
-- payload:  64 bits of SHA-256 of what was asked for
-- at:       instant of the charge, by the customer's clock, µs since the Unix epoch
-- cost:     units charged; returned: of these, units given back
-- state:    0 done; of a reservation 1 open, 2 committed, 3 released
-- body:     the answer, and what a refund or commit must know (see receipt.encode)
CREATE TABLE receipts_0 (
    customer bigint   NOT NULL,
    payload  bigint   NOT NULL,
    at       bigint   NOT NULL,
    cost     bigint   NOT NULL,
    returned bigint   NOT NULL DEFAULT 0,
    meter    integer  NOT NULL,
    shard    smallint NOT NULL,
    state    smallint NOT NULL DEFAULT 0,
    key      uuid     NOT NULL,
    body     bytea    NOT NULL,
    PRIMARY KEY (shard, customer, key)
);
CREATE TABLE receipts_1 (LIKE receipts_0 INCLUDING ALL);
CREATE TABLE receipts_2 (LIKE receipts_0 INCLUDING ALL);

-- Which of the three is written to, and since when, µs since the Unix epoch.
CREATE TABLE receipt_turn (
    one   boolean  PRIMARY KEY DEFAULT true CHECK (one),
    slot  smallint NOT NULL CHECK (slot BETWEEN 0 AND 2),
    since bigint   NOT NULL
);
INSERT INTO receipt_turn (slot, since) VALUES (0, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint);

-- What open reservations hold of each counter that they were charged to. A counter that
-- any hold is on begins its state with the identity 0 and the instant at which the first
-- of them expires; whoever comes to it at that instant or later takes off what is over.
-- at: instant of the charge, µs; limits: identities of the limits that were charged
CREATE TABLE holds (
    customer   bigint   NOT NULL,
    expires_at bigint   NOT NULL,
    at         bigint   NOT NULL,
    cost       bigint   NOT NULL,
    meter      integer  NOT NULL,
    shard      smallint NOT NULL,
    attribute  text     NOT NULL COLLATE "C",
    key        uuid     NOT NULL,
    limits     bigint[] NOT NULL,
    PRIMARY KEY (shard, customer, meter, attribute, expires_at, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- Changes of usage that are no hits: what a customer used before it came here, and what
-- was corrected or refunded when the hour's billing period was over. The partitions are
-- those of usage.
-- cost: units, below 0 of what was taken off; hour: the hour they were booked in
CREATE TABLE adjustments (
    customer bigint   NOT NULL,
    hour     bigint   NOT NULL,
    cost     bigint   NOT NULL,
    at       bigint   NOT NULL,
    meter    integer  NOT NULL,
    shard    smallint NOT NULL,
    key      uuid     NOT NULL,
    reason   text     NOT NULL,
    PRIMARY KEY (shard, customer, meter, hour, key)
) PARTITION BY RANGE (hour);
CREATE TABLE adjustments_default PARTITION OF adjustments DEFAULT;
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('CREATE TABLE adjustments_first PARTITION OF adjustments FOR VALUES FROM (MINVALUE) TO (%s)',
        extract(epoch FROM date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC' + interval '2 days') + interval '1 month')::bigint * 1000000);
END $$;
-- +goose StatementEnd

-- +goose Down
DROP TABLE adjustments, holds, receipt_turn, receipts_2, receipts_1, receipts_0;
