-- What a void invoice gave back of a base in advance goes on to the next invoice of its customer.
-- So each new invoice looks for the customer's void ones, which are few.

-- +goose NO TRANSACTION
-- +goose Up
-- An index that was left half-built by a start that ended is built again.
DROP INDEX CONCURRENTLY IF EXISTS invoices_void;
CREATE INDEX CONCURRENTLY invoices_void ON invoices (customer_id, chain, n) WHERE status = 'void';

-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS invoices_void;
