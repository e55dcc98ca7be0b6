-- Level meters, which count what is held, such as seats. Their ids are below 0: so all keys of hot
-- tables say what their meter is. Each statement may be run again.

-- +goose NO TRANSACTION
-- +goose Up

-- What a customer holds of a level meter, from an instant (µs) on until that of the next row. integral:
-- what was held before, in units · µs.
CREATE TABLE IF NOT EXISTS levels (
    shard    smallint NOT NULL,
    customer bigint   NOT NULL,
    meter    integer  NOT NULL CHECK (meter < 0),
    at       bigint   NOT NULL,
    level    bigint   NOT NULL CHECK (level BETWEEN 0 AND 999999999999999),
    integral numeric  NOT NULL,
    PRIMARY KEY (shard, customer, meter, at)
);

-- level_by, level: of a line of a level meter's usage, see plans.Price. level has 6 digits after the
-- point.
ALTER TABLE invoice_lines ADD COLUMN IF NOT EXISTS level_by text, ADD COLUMN IF NOT EXISTS level text;

-- +goose Down
-- The version before would take what is held for what was used.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM meters WHERE id < 0) THEN
        RAISE EXCEPTION 'the version before knows no level meters, and there are some';
    END IF;
END $$;
-- +goose StatementEnd
DROP TABLE IF EXISTS levels;
ALTER TABLE invoice_lines DROP COLUMN IF EXISTS level_by, DROP COLUMN IF EXISTS level;
