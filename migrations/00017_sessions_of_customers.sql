-- Sessions and links of the portal belong to a customer, not to its key: a key that is free can be
-- the next customer's. They also know the API key that made them, and end with it.

-- +goose Up

-- Who has one of these comes in by a new link.
DELETE FROM portal_links;
DELETE FROM sessions WHERE data ? 'customer';

-- customer_id: null in rows of the version before, which this one does not honour; in sessions also
-- null for those of keys. A forgotten customer takes its rows with it, on a node of either version.
-- key_id: the API key that made the link, or that somebody signed in with; null in rows of the
-- version before.
ALTER TABLE portal_links
    ADD COLUMN customer_id bigint REFERENCES customers (id) ON DELETE CASCADE,
    ADD COLUMN key_id      text;
ALTER TABLE sessions
    ADD COLUMN customer_id bigint REFERENCES customers (id) ON DELETE CASCADE,
    ADD COLUMN key_id      text;
CREATE INDEX portal_links_customer_id ON portal_links (customer_id);
CREATE INDEX portal_links_key ON portal_links (key_id);
CREATE INDEX sessions_customer_id ON sessions (customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX sessions_key ON sessions (key_id);

-- +goose Down
DELETE FROM portal_links;
DELETE FROM sessions WHERE data ? 'customer';
ALTER TABLE sessions DROP COLUMN customer_id, DROP COLUMN key_id;
ALTER TABLE portal_links DROP COLUMN customer_id, DROP COLUMN key_id;
