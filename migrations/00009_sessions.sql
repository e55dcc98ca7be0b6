-- The sessions of the pages, and the links by which a customer's people enter the portal.
-- Of each secret only the SHA-256 is kept. Secrets are 256 random bits, so no salt is needed.

-- +goose Up

-- data: what the session knows, as text by name; customer is the key of a portal session's.
-- expires_at: µs since the Unix epoch.
CREATE TABLE sessions (
    token      bytea  PRIMARY KEY,
    data       jsonb  NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE INDEX sessions_customer ON sessions ((data ->> 'customer')) WHERE data ? 'customer';

-- spent_at: when the link opened a session; it opens one only. Both are µs since the Unix epoch.
CREATE TABLE portal_links (
    token        bytea  PRIMARY KEY,
    customer     text   NOT NULL,
    path         text   NOT NULL,
    return_url   text   NOT NULL,
    embed_origin text   NOT NULL,
    theme        text   NOT NULL,
    expires_at   bigint NOT NULL,
    spent_at     bigint
);
CREATE INDEX portal_links_expiry ON portal_links (expires_at);
CREATE INDEX portal_links_customer ON portal_links (customer);

-- +goose Down
DROP TABLE portal_links, sessions;
