-- When limits refused hits. Hits write it, as counters and usage: it is hot.

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

-- +goose Down
DROP TABLE refusals;
