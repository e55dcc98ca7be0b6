-- Drafts of plans: what an admin is writing, whether it could be published or not.

-- +goose Up

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

-- +goose Down
DROP TABLE drafts;
