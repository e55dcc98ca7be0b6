-- When limits refused hits, and when so many percent of a limit were used. Hits write refusals and
-- thresholds: they are hot, as counters and usage are.

-- +goose Up

-- One row for each customer, meter, limit and minute in which the limit refused hits. It is a
-- statistic, as usage.denied is.
-- minute:            start, µs since the Unix epoch, by the customer's clock
-- first_at, last_at: instants of the first and the last hit that it refused, µs
-- units:             the sum of their costs
-- admits_at:         when the last one would have been admitted, µs; null: never
-- written_at:        when the row was written last, by PostgreSQL's clock, µs: rows go by it, also
--                    of customers on test clocks
CREATE TABLE refusals (
    customer   bigint   NOT NULL,
    minute     bigint   NOT NULL,
    first_at   bigint   NOT NULL,
    last_at    bigint   NOT NULL,
    units      bigint   NOT NULL,
    admits_at  bigint,
    written_at bigint   NOT NULL,
    meter      integer  NOT NULL,
    shard      smallint NOT NULL,
    limit_name text     NOT NULL COLLATE "C",
    PRIMARY KEY (shard, customer, meter, minute, limit_name)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);

-- Written with the charge that reached the threshold, and taken by the numberer when that is committed. A
-- hot table: what hits write. at: instant of the charge, µs. version: of the customer's own counter, as the
-- charge left it. name: of the limit; of a cap, that is cap. units: what the limit is. burst: of a limit that
-- refills, and percents are of it then; 0: of others. amount_minor: of a cap.
-- starts, resets: of the window, µs; 0: there is none. clock: the key of the customer's test clock, or ''.
-- written_at: when it was written, by PostgreSQL's clock, µs: events are shown in that order, also those of
-- customers on test clocks.
CREATE TABLE thresholds (
    customer     bigint   NOT NULL,
    at           bigint   NOT NULL,
    version      bigint   NOT NULL,
    used         bigint   NOT NULL,
    units        bigint   NOT NULL,
    burst        bigint   NOT NULL,
    amount_minor bigint   NOT NULL,
    starts       bigint   NOT NULL,
    resets       bigint   NOT NULL,
    written_at   bigint   NOT NULL,
    meter        integer  NOT NULL,
    shard        smallint NOT NULL,
    percent      smallint NOT NULL,
    name         text     NOT NULL COLLATE "C",
    clock        text     NOT NULL,
    PRIMARY KEY (shard, customer, meter, at, version, name, percent)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Up to which change limits were asked again whether they have reached a threshold by an edit. after: of the
-- next change, the last of its customers that was asked. leased_until: a node is at it.
CREATE TABLE threshold_changes (
    number       bigint      NOT NULL,
    after        bigint      NOT NULL DEFAULT 0,
    leased_until timestamptz NOT NULL DEFAULT '-infinity',
    one          boolean     PRIMARY KEY DEFAULT true CHECK (one)
);
INSERT INTO threshold_changes (number) SELECT number FROM change_number;

-- +goose Down
DROP TABLE threshold_changes, thresholds, refusals;
