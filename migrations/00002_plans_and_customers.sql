-- What admins write: meters, plans, test clocks, customers and what these have of their own.
-- These tables may use all of PostgreSQL.

-- +goose Up

-- returns: units of the meter have been refunded or reserved, so a refusal may be over
-- before its time. It is set once and stays.
CREATE TABLE meters (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key     text    NOT NULL UNIQUE,
    name    text    NOT NULL DEFAULT '',
    unit    text    NOT NULL,
    change  bigint  NOT NULL,
    returns boolean NOT NULL DEFAULT false
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

-- Test clocks stand still at now, µs since the Unix epoch, until they are set again.
-- history: the change and now of each of the newest settings, one after the other, the
-- oldest first.
CREATE TABLE test_clocks (
    id      integer  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key     text     NOT NULL UNIQUE,
    now     bigint   NOT NULL,
    change  bigint   NOT NULL,
    history bigint[] NOT NULL DEFAULT '{}'
);

-- joined_version: the plan's latest version when the customer joined it. Versions applied
--     to new customers only count for those who joined at them or later.
-- former_periods: the billing periods before the anchor, the interval or the timezone last
--     changed, the oldest first: until (µs since the Unix epoch), timezone, anchor, interval,
--     count.
-- features: what differs from the plan's.
-- anonymous: made by a hit, under the default plan, and forgotten when idle.
-- erased_at: when what identified a person was removed.
CREATE TABLE customers (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key            text COLLATE "C" NOT NULL UNIQUE,
    name           text        NOT NULL,
    plan_id        integer     NOT NULL REFERENCES plans (id),
    joined_version integer     NOT NULL,
    pinned_version integer,
    timezone       text        NOT NULL,
    billing_anchor text        NOT NULL,
    former_periods jsonb       NOT NULL DEFAULT '[]',
    features       jsonb       NOT NULL DEFAULT '{}',
    metadata       jsonb       NOT NULL DEFAULT '{}',
    test_clock_id  integer     REFERENCES test_clocks (id),
    anonymous      boolean     NOT NULL DEFAULT false,
    change         bigint      NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    archived_at    timestamptz,
    erased_at      timestamptz
);
CREATE INDEX customers_plan ON customers (plan_id);
CREATE INDEX customers_test_clock ON customers (test_clock_id) WHERE test_clock_id IS NOT NULL;
CREATE INDEX customers_anonymous ON customers (id) WHERE anonymous;
CREATE INDEX customers_archived ON customers (archived_at, id) WHERE archived_at IS NOT NULL;

-- An override counts as long as its row is there: it ends by a write, which has a change
-- number as every change of what hits are judged by. expires_at: µs since the Unix epoch,
-- by the customer's clock. On a test clock the row stays and counts before that instant.
CREATE TABLE overrides (
    customer_id bigint  NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    limit_name  text    NOT NULL,
    "limit"     bigint  NOT NULL,
    burst       bigint,
    expires_at  bigint,
    change      bigint  NOT NULL,
    reason      text    NOT NULL DEFAULT '',
    PRIMARY KEY (customer_id, limit_name)
);
CREATE INDEX overrides_expiry ON overrides (expires_at) WHERE expires_at IS NOT NULL;

-- Customers that were forgotten, until their counters are gone, too: a node that has not
-- heard of it may charge them for a moment. at: when the customer's row was deleted.
CREATE TABLE forgotten (
    customer bigint      PRIMARY KEY,
    at       timestamptz NOT NULL
);

-- Keys of erased customers that rows of changes up to this one still name: a minute later
-- they are taken out there, and here. at: when it was erased, µs since the Unix epoch.
CREATE TABLE erasures (
    change bigint PRIMARY KEY,
    key    text   NOT NULL,
    at     bigint NOT NULL
);

-- +goose Down
DROP TABLE erasures, forgotten, overrides, customers, test_clocks, plan_versions, plans, meters;
