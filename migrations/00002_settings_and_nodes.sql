-- Settings that all nodes share, so that they cannot differ between them, and which nodes serve.

-- +goose Up

-- The first node that starts writes what it was told; `quotad settings set` changes it.
CREATE TABLE settings (
    name  text PRIMARY KEY,
    value text NOT NULL
);

-- One row for each node that serves. A node writes its row every few seconds, and deletes it when
-- it stops.
-- id:            of this run of the program; name: its machine and port, for people
-- state, reason: what its /readyz answers
-- checked_at:    when it was last asked whether the books agree; null: never
-- disagreeing:   the checks that found something then
-- Instants are µs since the Unix epoch, by PostgreSQL's clock.
CREATE TABLE nodes (
    id          text   PRIMARY KEY,
    name        text   NOT NULL,
    version     text   NOT NULL,
    state       text   NOT NULL,
    reason      text   NOT NULL,
    started_at  bigint NOT NULL,
    seen_at     bigint NOT NULL,
    checked_at  bigint,
    disagreeing text[] NOT NULL DEFAULT '{}'
);

-- One row for each node and minute in which it decided hits or reservations. It is a statistic.
-- minute: start, µs since the Unix epoch
CREATE TABLE decisions (
    minute   bigint NOT NULL,
    node     text   NOT NULL,
    admitted bigint NOT NULL,
    refused  bigint NOT NULL,
    PRIMARY KEY (minute, node)
);

-- +goose Down
DROP TABLE decisions, nodes, settings;
