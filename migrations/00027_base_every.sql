-- Base prices that are for more intervals than one. Each statement may be run again: a run may end
-- between two. Down may have left the columns where they are.

-- +goose NO TRANSACTION
-- +goose Up

-- base_every: how many intervals the base price of the version is for. Nodes of the version before
-- know none above 1.
ALTER TABLE plan_versions ADD COLUMN IF NOT EXISTS base_every integer NOT NULL DEFAULT 1;

-- base: which base price the period lies in, if that is for more intervals than one, see
-- billing.Base; null: it has a base price of its own.
ALTER TABLE open_periods ADD COLUMN IF NOT EXISTS base jsonb;
ALTER TABLE periods ADD COLUMN IF NOT EXISTS base jsonb;

-- base_invoice, base_line: of unused, the line of base in advance that it gives back. Null in other
-- lines, and in those that nodes of the version before write: these are of the period's own base.
ALTER TABLE invoice_lines ADD COLUMN IF NOT EXISTS base_invoice uuid, ADD COLUMN IF NOT EXISTS base_line integer;
CREATE INDEX CONCURRENTLY IF NOT EXISTS invoice_lines_base ON invoice_lines (base_invoice) WHERE base_invoice IS NOT NULL;

-- +goose Down

DROP INDEX CONCURRENTLY IF EXISTS invoice_lines_base;
-- Where a base price is for more intervals than one, what was charged of it stays known. Up works on
-- with that.
-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM plan_versions WHERE base_every > 1) THEN
        RETURN;
    END IF;
    ALTER TABLE invoice_lines DROP COLUMN base_line, DROP COLUMN base_invoice;
    ALTER TABLE periods DROP COLUMN base;
    ALTER TABLE open_periods DROP COLUMN base;
    ALTER TABLE plan_versions DROP COLUMN base_every;
END $$;
-- +goose StatementEnd
