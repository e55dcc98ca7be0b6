-- What removing full and idle buckets needs, and counters in fewer bytes.

-- +goose Up
CREATE INDEX customers_archived ON customers (archived_at, id) WHERE archived_at IS NOT NULL;

-- A page holds some forty counters, of which a batch seldom charges more than a few: a
-- tenth of it is room enough to keep their updates HOT.
ALTER TABLE counters SET (fillfactor = 90);

-- A state with a long log is out of line. It does not compress, and must not be tried to
-- with every charge.
ALTER TABLE counters ALTER COLUMN state SET STORAGE EXTERNAL;

-- +goose Down
ALTER TABLE counters ALTER COLUMN state SET STORAGE EXTENDED;
ALTER TABLE counters SET (fillfactor = 60);
DROP INDEX customers_archived;
