-- What admins write: meters, plans, test clocks, customers and what these have of their own.
-- These tables may use all of PostgreSQL.

-- +goose Up

-- id: of a level meter, which counts what is held, such as seats, it is below 0. So all keys of
--     hot tables say what their meter is.
-- returns: units of the meter have been refunded or reserved, so a refusal may be over
--     before its time. It is set once and stays.
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
-- base_every: how many intervals the base price of the version is for.
CREATE TABLE plan_versions (
    plan_id    integer     NOT NULL REFERENCES plans (id),
    version    integer     NOT NULL,
    apply_to   text        NOT NULL CHECK (apply_to IN ('all', 'new')),
    document   jsonb       NOT NULL,
    change     bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    base_every integer     NOT NULL,
    PRIMARY KEY (plan_id, version)
);

-- Drafts of plans: what an admin is writing, whether it could be published or not.
-- plan:     the key of the plan, which may not be there yet
-- document: the plan as it was typed. It is text, since jsonb would change it.
-- based_on: the plan's newest version when the draft was begun; 0: there was none
-- revision: one more with each write. It is the draft's entity tag.
CREATE TABLE drafts (
    plan     text        PRIMARY KEY,
    document text        NOT NULL,
    based_on integer     NOT NULL,
    revision bigint      NOT NULL,
    saved_at timestamptz NOT NULL
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
-- cuts: boundaries of billing periods beside those of the anchor, ascending: starts_at,
--     trial_ends_at, ends_at. Hits read them, so that usage hours are cut there, too.
-- words: of the name, in full case folding and without accents. Who writes the name writes them.
--     A database folds the letters of its locale only, and in the locale C those of ASCII.
-- suspended_at: since when hits are refused; null: they are not.
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
    erased_at      timestamptz,
    cuts           bigint[]    NOT NULL DEFAULT '{}',
    words          tsvector    NOT NULL DEFAULT '',
    suspended_at     timestamptz,
    suspended_reason text      NOT NULL DEFAULT ''
);
CREATE INDEX customers_plan ON customers (plan_id);
CREATE INDEX customers_test_clock ON customers (test_clock_id) WHERE test_clock_id IS NOT NULL;
CREATE INDEX customers_anonymous ON customers (id) WHERE anonymous;
CREATE INDEX customers_archived ON customers (archived_at, id) WHERE archived_at IS NOT NULL;
-- Customers that hits made have no name, so that this index is no work for hits. fastupdate would
-- keep new names in a list that each search reads whole.
CREATE INDEX customers_words ON customers USING gin (words) WITH (fastupdate = off) WHERE name <> '';

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

-- What token buckets of customers were refilled by, so that an edit counts from its own instant.
-- One row for a token bucket that something of the customer's own has changed: an override, or
-- another plan or pin. It is replaced by the next such change. Edits by versions of the plan are
-- not in it: the versions say them. Instants are µs since the Unix epoch, by the customer's clock.
-- change, at: the change that wrote the row, and when that was
-- rates:      from which instant on the limit was how much, one after the other, the oldest first.
--             The first instant is the least number: always. At most 9 pairs.
-- until:      the plan counts again from here on: at, or the end of the override; null: with
--             another change
CREATE TABLE limit_rates (
    customer_id bigint   NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    limit_name  text     NOT NULL,
    change      bigint   NOT NULL,
    at          bigint   NOT NULL,
    rates       bigint[] NOT NULL,
    until       bigint,
    PRIMARY KEY (customer_id, limit_name)
);

-- What customers were on, are on and will be on. Rows are inserted and stay, except for the one that waits.
-- All instants are µs since the Unix epoch, by the customer's clock. The columns of customers have the
-- newest row that does not wait; the check terms_agree of reconcile holds that.
-- change:     of the write, and how: the order of a customer's rows. A scheduled change has the number of
--             the last write that moved it, and comes after what that write was itself.
-- how:        named (the customer was made or named), now (the billing period ended at from_at),
--             limits_now (prices count from the next period on), resume (billing began again), or what a
--             scheduled change waits for: period_end, base_end
-- limits_at:  the limits and the pin count from here on
-- from_at:    the row prices the periods that begin here or later, until a later row does
-- waits:      it is a scheduled change that nobody has written into customers yet. It counts from limits_at
--             on all the same. A customer has one at most.
-- clock_id, reached: of a row that waits, the customer's test clock, and the change at which the clock showed
--             limits_at: the row counts from then on, also if the clock is set back
-- former:     of a row that waits, the plan's interval is another, so that former_periods of the customer
--             have an end at limits_at
CREATE TABLE customer_terms (
    customer_id    bigint  NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    change         bigint  NOT NULL,
    how            text    NOT NULL CHECK (how IN ('named', 'now', 'limits_now', 'resume', 'period_end', 'base_end')),
    limits_at      bigint  NOT NULL,
    from_at        bigint  NOT NULL,
    waits          boolean NOT NULL DEFAULT false,
    clock_id       integer,
    reached        bigint,
    former         boolean NOT NULL DEFAULT false,
    plan_id        integer NOT NULL REFERENCES plans (id),
    joined_version integer NOT NULL,
    pinned_version integer,
    timezone       text    NOT NULL,
    billing_anchor text    NOT NULL,
    PRIMARY KEY (customer_id, change, how)
);
CREATE UNIQUE INDEX customer_terms_waits ON customer_terms (customer_id) WHERE waits;
CREATE INDEX customer_terms_due ON customer_terms (limits_at) WHERE waits AND clock_id IS NULL;
CREATE INDEX customer_terms_clock ON customer_terms (clock_id, limits_at) WHERE waits AND clock_id IS NOT NULL;
CREATE INDEX customer_terms_reached ON customer_terms (customer_id) WHERE waits AND reached IS NOT NULL;

-- Plans that customers asked for, and were not given by that. at: when each was last told by an
-- event, µs by the customer's clock.
CREATE TABLE plan_requests (
    customer_id bigint  NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    plan_id     integer NOT NULL REFERENCES plans (id),
    at          bigint  NOT NULL,
    PRIMARY KEY (customer_id, plan_id)
);

-- What a meter may cost a customer in a billing period.
-- amount_minor: no hit is admitted past it, in minor units of the customer's currency. How many units
-- that is follows from what prices the period.
CREATE TABLE caps (
    customer_id  bigint NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    meter        text   NOT NULL,
    amount_minor bigint NOT NULL CHECK (amount_minor BETWEEN 0 AND 999999999999999),
    PRIMARY KEY (customer_id, meter)
);

-- Customers that were forgotten, until their counters are gone, too: a node that has not
-- heard of it may charge them for a moment. at: when the customer's row was deleted.
CREATE TABLE forgotten (
    customer bigint      PRIMARY KEY,
    at       timestamptz NOT NULL
);

-- Keys of erased customers that rows of changes up to this one still name: a minute later
-- they are taken out there, and here. at: when it was erased, µs since the Unix epoch.
-- customer: whose entries in audit are scrubbed
CREATE TABLE erasures (
    change   bigint PRIMARY KEY,
    key      text   NOT NULL,
    at       bigint NOT NULL,
    customer bigint
);

-- +goose Down
DROP TABLE erasures, forgotten, caps, plan_requests, customer_terms, limit_rates, overrides, customers, test_clocks, drafts,
    plan_versions, plans, meters;
