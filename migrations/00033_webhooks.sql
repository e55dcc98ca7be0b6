-- Webhooks: events are sent to URLs.

-- +goose Up

-- types: of events that are sent; empty for all. secret: signs what is sent. old_secret signs, too, until
-- old_until. failing_since: since when nothing could be delivered.
CREATE TABLE webhooks (
    id            text        PRIMARY KEY,
    url           text        NOT NULL,
    types         text[]      NOT NULL,
    secret        bytea       NOT NULL,
    old_secret    bytea,
    old_until     timestamptz,
    created_at    timestamptz NOT NULL,
    failing_since timestamptz,
    disabled_at   timestamptz,
    disabled_for  text
);

-- An event that is to be sent to a webhook. due_at: when it is tried, or tried again where nobody says
-- what became of the last attempt. since: from when on it is retried for a day.
CREATE TABLE deliveries (
    event    bigint      NOT NULL,
    webhook  text        NOT NULL,
    state    text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'dead')),
    attempts integer     NOT NULL DEFAULT 0,
    since    timestamptz NOT NULL,
    due_at   timestamptz NOT NULL,
    last_at  timestamptz,
    status   integer,
    error    text,
    PRIMARY KEY (event, webhook)
);
CREATE INDEX deliveries_due ON deliveries (webhook, due_at) WHERE state = 'waiting';
CREATE INDEX deliveries_webhook ON deliveries (webhook, event);
-- For replays, which ask for events by the time at which they were shown.
CREATE INDEX events_numbered ON events (numbered_at);

-- +goose Down

DROP INDEX events_numbered;
DROP TABLE deliveries, webhooks;
