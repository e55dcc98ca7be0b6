-- What changed, for the nodes' memories, and API keys.

-- +goose Up

-- One row: the number of the newest change of any plan, customer, meter or key. An admin
-- write takes the row's lock first, so numbers become visible in their own order and a
-- node that polls for "greater than the last one I saw" misses none.
CREATE TABLE change_number (
    one    boolean PRIMARY KEY DEFAULT true CHECK (one),
    number bigint  NOT NULL
);
INSERT INTO change_number (number) VALUES (0);

-- kind: meter, plan, customer or key
-- token: which history of the database the change belongs to. A database that was restored, or a
--     standby that missed the last writes, draws the same numbers again. A node that saw a number
--     and its token, and finds the number gone or with another token, knows that history went back.
CREATE TABLE changes (
    number bigint PRIMARY KEY,
    kind   text        NOT NULL,
    key    text        NOT NULL,
    at     timestamptz NOT NULL DEFAULT now(),
    token  uuid        NOT NULL DEFAULT gen_random_uuid()
);

-- Only a key's SHA-256 is kept. Keys are 256 random bits, so no salt or stretching is needed.
CREATE TABLE keys (
    id         text        PRIMARY KEY,
    name       text        NOT NULL,
    scope      text        NOT NULL CHECK (scope IN ('admin', 'support', 'backend', 'read')),
    hash       bytea       NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);

-- The day on which a key was used last, in UTC. Nodes write it after requests.
CREATE TABLE key_uses (
    id      text PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    used_on date NOT NULL
);

-- +goose Down
DROP TABLE key_uses, keys, changes, change_number;
