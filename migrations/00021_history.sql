-- Which history of the database a change belongs to.

-- +goose Up

-- A database that was restored, or a standby that missed the last writes, draws the same numbers
-- again. So each change has a random token beside its number. A node that saw a pair of the two,
-- and finds the number gone or with another token, knows that history went back. The default has
-- nodes of the version before store one, too.
ALTER TABLE changes ADD COLUMN token uuid NOT NULL DEFAULT gen_random_uuid();

-- +goose Down
ALTER TABLE changes DROP COLUMN token;
