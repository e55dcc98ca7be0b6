-- The sessions of the pages, and the links by which a customer's people enter the portal.
-- Of each secret only the SHA-256 is kept. Secrets are 256 random bits, so no salt is needed.
-- They belong to a customer, not to its key: a key that is free can be the next customer's. They also
-- know the API key that made them, and end with it.

-- +goose Up

-- data: what the session knows, as text by name; customer is the key of a portal session's.
-- expires_at: µs since the Unix epoch.
-- customer_id: null in the session of a key. A forgotten customer takes its sessions with it.
-- key_id: the API key that made the link, or that somebody signed in with
CREATE TABLE sessions (
    token       bytea  PRIMARY KEY,
    data        jsonb  NOT NULL,
    expires_at  bigint NOT NULL,
    customer_id bigint REFERENCES customers (id) ON DELETE CASCADE,
    key_id      text   NOT NULL,
    CONSTRAINT sessions_of_customers CHECK ((customer_id IS NOT NULL) = (data ? 'customer'))
);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_customer_id ON sessions (customer_id) WHERE customer_id IS NOT NULL;
CREATE INDEX sessions_key ON sessions (key_id);

-- spent_at: when the link opened a session; it opens one only. Both are µs since the Unix epoch.
CREATE TABLE portal_links (
    token        bytea  PRIMARY KEY,
    path         text   NOT NULL,
    return_url   text   NOT NULL,
    embed_origin text   NOT NULL,
    theme        text   NOT NULL,
    expires_at   bigint NOT NULL,
    spent_at     bigint,
    customer_id  bigint NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    key_id       text   NOT NULL
);
CREATE INDEX portal_links_expiry ON portal_links (expires_at);
CREATE INDEX portal_links_customer_id ON portal_links (customer_id);
CREATE INDEX portal_links_key ON portal_links (key_id);

-- +goose Down
DROP TABLE portal_links, sessions;
