-- Caps: what a meter may cost a customer in a billing period.

-- +goose Up

-- amount_minor: no hit is admitted past it, in minor units of the customer's currency. How many units
-- that is follows from what prices the period.
CREATE TABLE caps (
    customer_id  bigint NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
    meter        text   NOT NULL,
    amount_minor bigint NOT NULL CHECK (amount_minor BETWEEN 0 AND 999999999999999),
    PRIMARY KEY (customer_id, meter)
);

-- +goose Down

DROP TABLE caps;
