-- Changes of plan that wait for the end of a billing period.

-- +goose Up

-- at: from when on the plan counts, µs by the customer's clock. until: what end it waits for, which
-- may move. From at on the row counts as if it were written in customers, until somebody does that.
-- joined_version: the newest when the change was scheduled. former: that plan's interval is another,
-- so the former periods of the customer end at at, too. clock_id: the customer's test clock. done: the
-- clock has shown at once, so the change counts even where the clock is set back.
CREATE TABLE scheduled_changes (
    customer_id    bigint  PRIMARY KEY REFERENCES customers (id) ON DELETE CASCADE,
    clock_id       integer,
    change         bigint  NOT NULL,
    at             bigint  NOT NULL,
    until          text    NOT NULL CHECK (until IN ('period_end', 'base_end')),
    plan_id        integer NOT NULL REFERENCES plans (id),
    joined_version integer NOT NULL,
    pinned_version integer,
    former         boolean NOT NULL DEFAULT false,
    done           boolean NOT NULL DEFAULT false
);
CREATE INDEX scheduled_changes_at ON scheduled_changes (at) WHERE clock_id IS NULL;
CREATE INDEX scheduled_changes_clock ON scheduled_changes (clock_id, at) WHERE clock_id IS NOT NULL;
CREATE INDEX scheduled_changes_done ON scheduled_changes (customer_id) WHERE done;

-- +goose Down

DROP TABLE scheduled_changes;
