-- Customers are found by the words of their names.

-- +goose NO TRANSACTION
-- +goose Up

-- words: of the name, in full case folding and without accents. Who writes the name writes them. A database
-- folds the letters of its locale only, and in the locale C those of ASCII.
ALTER TABLE customers ADD COLUMN IF NOT EXISTS words tsvector NOT NULL DEFAULT '';

-- Customers that hits made have no name, so that an index is no work for hits. fastupdate would keep
-- new names in a list that each search reads whole. A build that was cut off leaves an index that is
-- of no use.
DROP INDEX CONCURRENTLY IF EXISTS customers_words;
CREATE INDEX CONCURRENTLY customers_words ON customers USING gin (words) WITH (fastupdate = off) WHERE name <> '';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS customers_words;
ALTER TABLE customers DROP COLUMN IF EXISTS words;
