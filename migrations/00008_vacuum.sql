-- Hits leave up to three versions of rows behind in a page of some forty before it is pruned.
-- Vacuum is for what was deleted: with a twentieth of dead rows, as until now, it would begin
-- again as soon as it has ended.

-- +goose Up
ALTER TABLE counters SET (autovacuum_vacuum_scale_factor = 0.15);

-- +goose Down
ALTER TABLE counters SET (autovacuum_vacuum_scale_factor = 0.05);
