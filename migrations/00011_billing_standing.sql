-- What billing remembers of the present: what was known when a period began, and since when a
-- customer cannot be done.

-- +goose Up

-- known_from, known_end: the period that began at known_from was known to end at known_end. ends_at
-- was written since, before the period was open.
ALTER TABLE billing_accounts ADD COLUMN known_from bigint, ADD COLUMN known_end bigint;

-- busy_since: when somebody else's work on its rows first kept the customer from being done, of
-- PostgreSQL's time. Null: the last try was not kept from it.
ALTER TABLE open_periods ADD COLUMN busy_since bigint;

-- +goose Down
ALTER TABLE open_periods DROP COLUMN busy_since;
ALTER TABLE billing_accounts DROP COLUMN known_end, DROP COLUMN known_from;
