-- What ends a customer's usage: the end of its billing, and a suspension.

-- +goose Up

-- after_end: what becomes of hits after ends_at: block refuses them, free does not bill them. Accounts
-- that were made before there was a choice stay as they were. New ones block, whatever the version of
-- the node that makes them.
ALTER TABLE billing_accounts ADD COLUMN after_end text NOT NULL DEFAULT 'free' CHECK (after_end IN ('block', 'free'));
ALTER TABLE billing_accounts ALTER COLUMN after_end SET DEFAULT 'block';

-- archived_end: where archiving the customer ended its billing, µs. Nobody uses anything from there on.
-- Null: it is not archived, or its billing had ended before.
ALTER TABLE billing_accounts ADD COLUMN archived_end bigint;

-- suspended_at: since when hits are refused; null: they are not.
ALTER TABLE customers ADD COLUMN suspended_at timestamptz, ADD COLUMN suspended_reason text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE customers DROP COLUMN suspended_at, DROP COLUMN suspended_reason;
ALTER TABLE billing_accounts DROP COLUMN after_end, DROP COLUMN archived_end;
