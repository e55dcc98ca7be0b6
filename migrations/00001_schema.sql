-- The first schema. Hot tables (counters, usage) carry `shard` first in their primary
-- key and in every predicate, and have no foreign keys, triggers or volatile defaults,
-- so that they can be distributed by it. Plans, customers and keys may use all of PostgreSQL.

-- +goose Up

-- One row: the number of the newest change of any plan, customer, meter or key. An admin
-- write takes the row's lock first, so numbers become visible in their own order and a
-- node that polls for "greater than the last one I saw" misses none.
CREATE TABLE change_number (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint  NOT NULL
);
INSERT INTO change_number (number) VALUES (0);

-- What changed, for the nodes' memories: kind is meter, plan, customer or key.
CREATE TABLE changes (
    number bigint PRIMARY KEY,
    kind   text        NOT NULL,
    key    text        NOT NULL,
    at     timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE meters (
    id     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key    text    NOT NULL UNIQUE,
    name   text    NOT NULL DEFAULT '',
    unit   text    NOT NULL,
    change bigint  NOT NULL
);

CREATE TABLE plans (
    id             integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key            text    NOT NULL UNIQUE,
    latest_version integer NOT NULL
);

-- Versions are immutable. document is the plan as the admin wrote it, defaults filled in.
CREATE TABLE plan_versions (
    plan_id    integer     NOT NULL REFERENCES plans (id),
    version    integer     NOT NULL,
    apply_to   text        NOT NULL CHECK (apply_to IN ('all', 'new')),
    document   jsonb       NOT NULL,
    change     bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (plan_id, version)
);

-- joined_version is the plan's latest version when the customer joined it: versions
-- applied to new customers only count for those who joined at them or later.
CREATE TABLE customers (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key            text        NOT NULL UNIQUE,
    name           text        NOT NULL,
    plan_id        integer     NOT NULL REFERENCES plans (id),
    joined_version integer     NOT NULL,
    pinned_version integer,
    timezone       text        NOT NULL,
    billing_anchor text        NOT NULL,
    metadata       jsonb       NOT NULL DEFAULT '{}',
    change         bigint      NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    archived_at    timestamptz
);
CREATE INDEX customers_plan ON customers (plan_id);

-- Only a key's SHA-256 is kept. Keys are 256 random bits, so no salt or stretching is needed.
CREATE TABLE keys (
    id         text        PRIMARY KEY,
    name       text        NOT NULL,
    scope      text        NOT NULL CHECK (scope IN ('admin', 'backend', 'read')),
    hash       bytea       NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);

-- One row per customer and meter, and one per value of a `per` attribute.
-- state:   for each limit three integers: its identity, its level and its aux, whose
--          meaning is the algorithm's (see quotad_step_v1)
-- at:      instant of the last charge, µs since the Unix epoch
-- hour:    start of the running hour, µs; units: admitted in it, not yet in usage
-- version: hits charged; total: units charged, ever (it stops at 2^63-1, as units do)
-- change:  the newest change number the row was judged under
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
    PRIMARY KEY (shard, customer, meter, attribute)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);

-- The finished hours. hour: start, µs since the Unix epoch. denied is a statistic.
CREATE TABLE usage (
    customer bigint   NOT NULL,
    hour     bigint   NOT NULL,
    admitted bigint   NOT NULL DEFAULT 0,
    denied   bigint   NOT NULL DEFAULT 0,
    meter    integer  NOT NULL,
    shard    smallint NOT NULL,
    PRIMARY KEY (shard, customer, meter, hour)
) WITH (fillfactor = 80);

-- +goose Down
DROP TABLE usage, counters, keys, customers, plan_versions, plans, meters, changes, change_number;
