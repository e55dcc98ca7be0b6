package quota

import (
	"context"

	"github.com/jackc/pgx/v5"

	"quotad/internal/quota/locked"
	"quotad/internal/quota/model"
)

// OpenReservation is a reservation that is neither settled nor expired.
type OpenReservation struct {
	ID          locked.ReservationID
	Cost        int64             // units that it holds
	At, Expires int64             // by the customer's clock, µs
	Attributes  map[string]string // of its attributes those that limits were per
}

// OpenFilter selects open reservations of a customer.
type OpenFilter struct {
	Customer int64
	Meter    int32 // 0: of all meters
	// Attribute selects the reservations that hold units in the counter of an attribute value (see
	// model.AttributeKey). An empty Attribute selects all.
	Attribute string
	Now       int64            // by the customer's clock, µs: what expires by then is over
	After     *OpenReservation // those after it in the list; nil: from the start
	Most      int
}

// Each open reservation has a hold on the customer's own counter of its meter. The first statement jumps from
// one meter with holds to the next. For each meter, the unexpired holds are read by their key, in the order of
// expiry, and no more than requested. An operation on a counter at or after a hold's expiry removes the hold, so
// the counter's own instant need not be compared. The parameters are $1–$2 shard and customer, $3 meter, $4
// attribute, $5 the instant, $6–$7 the position, and $8 the number of rows.
const openSQL = `
WITH RECURSIVE m(meter) AS (
	SELECT $3::integer
	UNION ALL
	SELECT (SELECT h.meter FROM holds h
		WHERE h.shard = $1 AND h.customer = $2 AND (h.meter, h.attribute) >= (m.meter + 1, '')
		ORDER BY h.meter, h.attribute LIMIT 1)
	FROM m WHERE $3 = 0 AND m.meter IS NOT NULL
)
SELECT o.meter, o.key, o.cost, o.at, o.expires_at, r.body
FROM (
	SELECT h.* FROM m, LATERAL (
		SELECT meter, key, cost, at, expires_at FROM holds
		WHERE shard = $1 AND customer = $2 AND meter = m.meter AND attribute = $4
		  AND expires_at > $5 AND (expires_at, key) > ($6, $7)
		ORDER BY expires_at, key LIMIT $8) h
	ORDER BY h.expires_at, h.key LIMIT $8) o
LEFT JOIN LATERAL (
	SELECT body FROM receipts_0 WHERE shard = $1 AND customer = $2 AND key = o.key
	UNION ALL
	SELECT body FROM receipts_1 WHERE shard = $1 AND customer = $2 AND key = o.key
	UNION ALL
	SELECT body FROM receipts_2 WHERE shard = $1 AND customer = $2 AND key = o.key) r ON true
ORDER BY o.expires_at, o.key`

// Open returns a customer's open reservations in the order of their expiry.
func (e *Engine) Open(ctx context.Context, f OpenFilter) ([]OpenReservation, error) {
	var expires int64
	var key [16]byte
	if f.After != nil {
		expires, key = f.After.Expires, f.After.ID.Key()
	}
	return collect(ctx, e.options.Pool, e.readTries, func(row pgx.CollectableRow) (o OpenReservation, err error) {
		var meter int32
		var key [16]byte
		var body []byte
		err = row.Scan(&meter, &key, &o.Cost, &o.At, &o.Expires, &body)
		o.ID, o.Attributes = locked.NewReservationID(f.Customer, meter, key), locked.AttributesOf(body)
		return o, err
	}, openSQL, model.Shard(f.Customer), f.Customer, f.Meter, f.Attribute, f.Now, expires, key, f.Most)
}
