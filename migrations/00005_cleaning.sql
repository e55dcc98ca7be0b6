-- What the removal of full and idle buckets needs.

-- +goose Up
CREATE INDEX customers_archived ON customers (archived_at, id) WHERE archived_at IS NOT NULL;

-- +goose Down
DROP INDEX customers_archived;
