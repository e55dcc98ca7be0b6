-- Fills in what 00019 made: the copies of what invoices took of adjustments, and the queue of those that
-- no invoice has taken. It may be run again.

-- +goose NO TRANSACTION
-- +goose Up

-- A transaction for each shard. It has the locks of the billing of the customers: nobody takes an
-- adjustment meanwhile, or gives one up. OFFSET 0 and the settings have each row looked up by its key.
-- +goose StatementBegin
DO $$
DECLARE
    slice     smallint := -1;
    concerned bigint[];
BEGIN
    LOOP
        PERFORM set_config(name, 'off', true) FROM unnest(ARRAY['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin', 'jit']) AS name;
        slice := (SELECT min(shard) FROM adjustments WHERE shard > slice);
        EXIT WHEN slice IS NULL;
        concerned := ARRAY(SELECT DISTINCT customer FROM adjustments WHERE shard = slice);
        PERFORM FROM open_periods WHERE customer_id = ANY (concerned) ORDER BY customer_id FOR UPDATE;
        INSERT INTO open_adjustments (customer, hour, meter, key)
            SELECT customer, hour, meter, key FROM adjustments a WHERE shard = slice AND customer = ANY (concerned) AND NOT EXISTS (
                SELECT FROM line_adjustments l JOIN invoices i ON i.id = l.invoice_id AND i.status <> 'void'
                WHERE l.customer = a.customer AND l.meter = a.meter AND l.hour = a.hour AND l.key = a.key OFFSET 0)
            ON CONFLICT DO NOTHING;
        UPDATE line_adjustments l SET cost = a.cost, at = a.at, reason = a.reason FROM adjustments a
            WHERE a.shard = slice AND l.customer = a.customer AND l.meter = a.meter AND l.hour = a.hour AND l.key = a.key AND l.cost IS NULL;
        COMMIT;
    END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
-- What was filled in stays as right without this file: 00019 takes it away.
