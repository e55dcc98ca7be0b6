package usage

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"
)

// Archive says which hours were taken out, by instants, µs. math.MinInt64 is before all hours.
type Archive struct {
	// Before: what is of earlier hours is never written any more.
	Before int64
	// GoneBefore: no rows of earlier hours are there any more. It is at most Before.
	GoneBefore int64
	// Months is how many tables of usage were taken out. The first, which has all earlier hours, counts as one.
	Months int
}

// NoArchive is that of which nothing was taken out.
var NoArchive = Archive{Before: math.MinInt64, GoneBefore: math.MinInt64}

// ArchiveSQL reads the columns of Archive.
const ArchiveSQL = `
SELECT before, gone_before, (SELECT count(*) FROM archived_tables WHERE part_of <> 'adjustments') FROM archive WHERE one`

// ReadArchive reads what was taken out. Read it after the hours that it may explain: a month may be
// taken out in between.
func ReadArchive(ctx context.Context, q Querier) (Archive, error) {
	rows, _ := q.Query(ctx, ArchiveSQL)
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Archive])
}
