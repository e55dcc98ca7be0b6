package quota

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// The parameters are $1–$2 shards and customers, $3 the key of the batch, and $4 its payload.
const otherBatchSQL = `
SELECT i.customer FROM unnest($1::smallint[], $2::bigint[]) AS i(shard, customer),
LATERAL (
	SELECT payload FROM receipts_0 WHERE shard = i.shard AND customer = i.customer AND key = $3
	UNION ALL
	SELECT payload FROM receipts_1 WHERE shard = i.shard AND customer = i.customer AND key = $3
	UNION ALL
	SELECT payload FROM receipts_2 WHERE shard = i.shard AND customer = i.customer AND key = $3) r
WHERE r.payload <> $4 LIMIT 1`

// OtherBatch reports whether one of a batch's customers has already done another batch under the batch's id. The
// check only avoids that a batch is done in part, because each hit is compared with the id again when it is
// charged. Therefore OtherBatch does nothing while the database is too slow.
//
// Errors: ErrOtherPayload, and those of a read.
func (e *Engine) OtherBatch(ctx context.Context, customers []int64, id model.ID) error {
	if err := e.node.Circuit.Err(); err != nil {
		return err
	}
	others, err := collect(ctx, e.options.Pool, e.readTries, pgx.RowTo[int64], otherBatchSQL, shardsOf(customers), customers, id.Key, id.Payload)
	if err == nil && len(others) > 0 {
		return locked.ErrOtherPayload
	}
	return err
}
