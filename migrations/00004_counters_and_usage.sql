-- What hits write. These tables are hot: `shard` is first in their primary key and in every
-- predicate, and they have no foreign keys, triggers or volatile defaults, so that they can
-- be distributed by it. Only their key is indexed, so that updates of counters stay HOT.

-- +goose Up

-- One row per customer and meter, and one per value of a `per` attribute.
-- at:      instant of the last charge, µs since the Unix epoch
-- hour:    start of the running hour, µs; units: admitted in it, not yet in usage
-- total:   units charged, ever (it stops at 2^63-1, as units do)
-- version: hits charged
-- change:  the newest change number the row was judged under
-- state:   for each limit four integers, its identity, its level and its aux, whose meaning
--          is the algorithm's, and the instant until which it says anything. After a limit whose
--          identity is below 0, a log's, come aux more. See docs/internals/arithmetic.md.
-- departed: the same of limits that the plan has no more, each after the instant that it is of;
--          null: there are none. Swaps neither read nor write it.
-- generation: of a level meter, the generation of its values (docs/internals/levels.md); else null
--
-- A page holds some forty counters, of which a batch seldom charges more than a few: a tenth
-- of it is room enough to keep their updates HOT. Hits prune the pages that they reach.
-- A counter changes with every hit, so the table would be sampled again every ten seconds,
-- which holds up hits. Rows are reached by their keys whatever the statistics say.
CREATE TABLE counters (
    customer  bigint   NOT NULL,
    at        bigint   NOT NULL DEFAULT 0,
    hour      bigint   NOT NULL DEFAULT 0,
    units     bigint   NOT NULL DEFAULT 0,
    total     bigint   NOT NULL DEFAULT 0,
    version   bigint   NOT NULL DEFAULT 0,
    change    bigint   NOT NULL DEFAULT 0,
    meter     integer  NOT NULL,
    shard     smallint NOT NULL,
    attribute text     NOT NULL COLLATE "C" DEFAULT '',
    state     bigint[] NOT NULL DEFAULT '{}',
    departed  bigint[],
    generation bigint,
    PRIMARY KEY (shard, customer, meter, attribute)
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_threshold = 100000000);

-- A state with a long log is out of line. It does not compress, and must not be tried to
-- with every charge. (PostgreSQL 15 takes no STORAGE in CREATE TABLE.)
ALTER TABLE counters ALTER COLUMN state SET STORAGE EXTERNAL;
ALTER TABLE counters ALTER COLUMN departed SET STORAGE EXTERNAL;

-- The finished hours. hour: start, µs since the Unix epoch. denied is a statistic.
-- The index holds admitted, too. The hours of a customer's month lie in as many pages, and a sum
-- over them reads the index alone. It pays with the few hours that get more units once they are
-- finished: these updates are not HOT.
--
-- A partition for each UTC month of the hour. Old months are taken out whole, and the indexes of the
-- months that are written to stay small. Nodes make the months to come (upkeep.Partitioner). Rows whose
-- month is not made lie in usage_default: test clocks and imports write hours of any year.
CREATE TABLE usage (
    customer bigint   NOT NULL,
    hour     bigint   NOT NULL,
    admitted bigint   NOT NULL DEFAULT 0,
    denied   bigint   NOT NULL DEFAULT 0,
    meter    integer  NOT NULL,
    shard    smallint NOT NULL,
    PRIMARY KEY (shard, customer, meter, hour) INCLUDE (admitted)
) PARTITION BY RANGE (hour);
CREATE TABLE usage_default PARTITION OF usage DEFAULT WITH (fillfactor = 80);

-- The first partition has all hours of before the database was made, which imports write. It ends with a
-- month, at least two days from now: so hits have a partition until nodes make the next one.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('CREATE TABLE usage_first PARTITION OF usage FOR VALUES FROM (MINVALUE) TO (%s) WITH (fillfactor = 80)',
        extract(epoch FROM date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC' + interval '2 days') + interval '1 month')::bigint * 1000000);
END $$;
-- +goose StatementEnd

-- What a customer holds of a level meter, from an instant (µs) on until that of the next row. integral:
-- what was held before, in units · µs.
CREATE TABLE levels (
    shard    smallint NOT NULL,
    customer bigint   NOT NULL,
    meter    integer  NOT NULL CHECK (meter < 0),
    at       bigint   NOT NULL,
    level    bigint   NOT NULL CHECK (level BETWEEN 0 AND 999999999999999),
    integral numeric  NOT NULL,
    PRIMARY KEY (shard, customer, meter, at)
);

-- +goose Down
DROP TABLE levels, usage, counters;
