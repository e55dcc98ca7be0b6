package usage

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"
)

// Archive describes the archived hours by instants, µs. math.MinInt64 means that no hour is archived.
type Archive struct {
	// Before is the instant before which no usage is written any more.
	Before int64
	// GoneBefore is the instant before which no rows exist any more. It is at most Before.
	GoneBefore int64
	// Months is the number of archived usage tables. The first table contains all earlier hours and counts as
	// one.
	Months int
}

// NoArchive is the Archive of a database without archived hours.
var NoArchive = Archive{Before: math.MinInt64, GoneBefore: math.MinInt64}

// ArchiveSQL reads the columns of Archive.
const ArchiveSQL = `
SELECT before, gone_before, (SELECT count(*) FROM archived_tables WHERE part_of <> 'adjustments') FROM archive WHERE one`

// ReadArchive reads the archived time spans. Read them after the hours that they may explain, because a month
// may be archived in between.
func ReadArchive(ctx context.Context, q Querier) (Archive, error) {
	rows, _ := q.Query(ctx, ArchiveSQL)
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Archive])
}
