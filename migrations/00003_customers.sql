-- What a customer may have of its own: features, overridden limits, a test clock.

-- +goose Up

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

-- features: what differs from the plan's. anonymous: made by a hit, under the default
-- plan, and forgotten when idle. erased_at: when what identified a person was removed.
-- former_periods: the billing periods before the anchor, the interval or the timezone last
-- changed, the oldest first: until (µs since the Unix epoch), timezone, anchor, interval,
-- count.
ALTER TABLE customers
    ADD COLUMN former_periods jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN features      jsonb   NOT NULL DEFAULT '{}',
    ADD COLUMN test_clock_id integer REFERENCES test_clocks (id),
    ADD COLUMN anonymous     boolean NOT NULL DEFAULT false,
    ADD COLUMN erased_at     timestamptz;
CREATE INDEX customers_test_clock ON customers (test_clock_id) WHERE test_clock_id IS NOT NULL;
CREATE INDEX customers_anonymous ON customers (id) WHERE anonymous;

-- Customers that were forgotten, until their counters are gone, too: a node that has not
-- heard of it may charge them for a moment. at: when the customer's row was deleted.
CREATE TABLE forgotten (
    customer bigint      PRIMARY KEY,
    at       timestamptz NOT NULL
);

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
    PRIMARY KEY (customer_id, limit_name)
);
CREATE INDEX overrides_expiry ON overrides (expires_at) WHERE expires_at IS NOT NULL;

-- Keys of erased customers that rows of changes up to this one still name: a minute later
-- they are taken out there, and here. at: when it was erased, µs since the Unix epoch.
CREATE TABLE erasures (
    change bigint PRIMARY KEY,
    key    text   NOT NULL,
    at     bigint NOT NULL
);

-- +goose Down
DROP TABLE erasures, overrides, forgotten;
ALTER TABLE customers
    DROP COLUMN former_periods, DROP COLUMN features, DROP COLUMN test_clock_id, DROP COLUMN anonymous, DROP COLUMN erased_at;
DROP TABLE test_clocks;
