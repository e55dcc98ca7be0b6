-- Settings that all nodes share, so that they cannot differ between them.

-- +goose Up

-- The first node that starts writes what it was told; `quotad settings set` changes it.
CREATE TABLE settings (
    name  text PRIMARY KEY,
    value text NOT NULL
);

-- +goose Down
DROP TABLE settings;
