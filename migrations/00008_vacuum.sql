-- Hits leave a few versions of rows behind in each page until it is pruned, which one hit in three
-- does. Vacuum is for what was deleted: with a twentieth of dead rows, as until now, it would
-- begin again as soon as it has ended.

-- +goose Up
ALTER TABLE counters SET (autovacuum_vacuum_scale_factor = 0.25);

-- +goose Down
ALTER TABLE counters SET (autovacuum_vacuum_scale_factor = 0.05);
