-- What token buckets of customers were refilled by, so that an edit counts from its own instant.

-- +goose Up

-- One row for a token bucket that something of the customer's own has changed: an override, or
-- another plan or pin. It is replaced by the next such change. Edits by versions of the plan are
-- not in it: the versions say them. Instants are µs since the Unix epoch, by the customer's clock.
-- change, at: the change that wrote the row, and when that was
-- rates:      from which instant on the limit was how much, one after the other, the oldest first.
--             The first instant is the least number: always. At most 9 pairs.
-- until:      the plan counts again from here on: at, or the end of the override; null: with
--             another change
CREATE TABLE limit_rates (
    customer_id bigint   NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    limit_name  text     NOT NULL,
    change      bigint   NOT NULL,
    at          bigint   NOT NULL,
    rates       bigint[] NOT NULL,
    until       bigint,
    PRIMARY KEY (customer_id, limit_name)
);

-- The overrides that are there. An override is of an unknown instant when its change is not kept
-- any more: then it has counted always.
INSERT INTO limit_rates (customer_id, limit_name, change, at, rates, until)
SELECT customer_id, limit_name, change, coalesce(at, 0),
    CASE WHEN at IS NULL OR before IS NULL THEN ARRAY[-9223372036854775808, "limit"]
         ELSE ARRAY[-9223372036854775808, before, at, "limit"] END::bigint[], expires_at
FROM (
    SELECT o.customer_id, o.limit_name, o.change, o."limit", o.expires_at,
        CASE WHEN t.id IS NULL THEN (SELECT (extract(epoch FROM ch.at) * 1000000)::bigint FROM changes ch WHERE ch.number = o.change)
             ELSE (SELECT t.history[i + 1] FROM generate_series(1, cardinality(t.history), 2) i
                   WHERE t.history[i] < o.change ORDER BY i DESC LIMIT 1) END AS at,
        (SELECT (l->>'limit')::bigint
         FROM plan_versions v, jsonb_path_query(v.document, '$.limits[*] ? (@.algorithm == "token_bucket")') l
         WHERE v.plan_id = c.plan_id AND l->>'name' = o.limit_name AND v.version = coalesce(c.pinned_version, greatest(c.joined_version, (
             SELECT max(a.version) FROM plan_versions a
             WHERE a.plan_id = c.plan_id AND a.apply_to = 'all' AND a.change < o.change)))) AS before,
        (SELECT v.document FROM plan_versions v
         WHERE v.plan_id = c.plan_id AND v.version = coalesce(c.pinned_version, greatest(c.joined_version, (
             SELECT max(a.version) FROM plan_versions a WHERE a.plan_id = c.plan_id AND a.apply_to = 'all')))) AS document
    FROM overrides o JOIN customers c ON c.id = o.customer_id LEFT JOIN test_clocks t ON t.id = c.test_clock_id
) found
WHERE EXISTS (
    SELECT FROM jsonb_path_query(document, '$.limits[*] ? (@.algorithm == "token_bucket")') l WHERE l->>'name' = limit_name);

-- +goose Down
DROP TABLE limit_rates;
