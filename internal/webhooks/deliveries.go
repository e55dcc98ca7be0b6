package webhooks

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// The states of a delivery.
const (
	Waiting   = "waiting"
	Delivered = "delivered"
	Dead      = "dead"
)

// Delivery is an event that is sent to a webhook.
type Delivery struct {
	Event    int64
	Type     string
	State    string
	Attempts int
	DueAt    time.Time // of one that waits
	LastAt   *time.Time
	Status   *int
	Error    *string
}

const webhookThere = `SELECT EXISTS (SELECT FROM webhooks WHERE id = $1)`

const listDeliveries = `
	SELECT d.event, e.type, d.state, d.attempts, d.due_at, d.last_at, d.status, d.error
	FROM deliveries d JOIN events e ON e.id = d.event WHERE d.webhook = $1 AND d.event < $2 ORDER BY d.event DESC LIMIT $3`

const kindDeliveries = "deliveries"

func isEvent(position string) bool {
	id, err := strconv.ParseInt(position, 10, 64)
	return err == nil && id > 0 && strconv.FormatInt(id, 10) == position
}

// Deliveries returns the past and pending deliveries of a webhook, the newest event first. Errors: ErrUnknown,
// and model.FieldErrors for a wrong page.
func (ws *Webhooks) Deliveries(ctx context.Context, id string, page plans.Page) (*plans.List[Delivery], error) {
	limit, position, err := store.OpenPage(page, kindDeliveries, isEvent)
	if err != nil {
		return nil, err
	}
	before := int64(math.MaxInt64)
	if position != "" {
		before, _ = strconv.ParseInt(position, 10, 64) // isEvent has read it
	}
	ctx, cancel := context.WithTimeout(ctx, ws.operation())
	defer cancel()
	var there bool
	if err := ws.pool.QueryRow(ctx, webhookThere, id).Scan(&there); err != nil {
		return nil, store.Classify(err)
	}
	if !there {
		return nil, ErrUnknown
	}
	rows, _ := ws.pool.Query(ctx, listDeliveries, id, before, limit+1)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
	if err != nil {
		return nil, store.Classify(err)
	}
	for i := range found {
		d := &found[i]
		if d.DueAt = d.DueAt.UTC(); d.LastAt != nil {
			*d.LastAt = d.LastAt.UTC()
		}
	}
	return store.Paged(found, limit, kindDeliveries, func(d Delivery) string { return strconv.FormatInt(d.Event, 10) }), nil
}

// maxReplay bounds the number of events of one replay.
const maxReplay = 100_000

const lockWebhook = `SELECT` + columns + `FROM webhooks WHERE id = $1 FOR UPDATE`

const countReplay = `
	SELECT count(*) FROM (SELECT FROM events WHERE numbered_at >= $1 AND numbered_at < $2 AND ($3::text[] = '{}' OR type = ANY ($3)) LIMIT $4) e`

// replayEvents skips pending deliveries, because a node may be sending them.
const replayEvents = `
	INSERT INTO deliveries AS d (event, webhook, since, due_at)
	SELECT id, $4, clock_timestamp(), clock_timestamp() FROM events
	WHERE numbered_at >= $1 AND numbered_at < $2 AND ($3::text[] = '{}' OR type = ANY ($3)) ORDER BY id
	ON CONFLICT (event, webhook) DO UPDATE
		SET state = 'waiting', attempts = 0, since = excluded.since, due_at = excluded.due_at, status = NULL, error = NULL
		WHERE d.state <> 'waiting'`

// Replay sends the events again that were shown in [from, to), µs of the database's clock. It includes events
// that were delivered already, and events from before the webhook was created. It returns their number. Errors:
// ErrUnknown, ErrDisabled, ErrReplay.
func (ws *Webhooks) Replay(ctx context.Context, id string, from, to int64) (again int64, err error) {
	err = ws.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		w, err := one(ctx, tx, lockWebhook, id)
		if err != nil {
			return err
		}
		if w.DisabledAt != nil {
			return ErrDisabled
		}
		first, last := time.UnixMicro(from), time.UnixMicro(to)
		var many int64
		if err := tx.QueryRow(ctx, countReplay, first, last, w.Types, maxReplay+1).Scan(&many); err != nil {
			return err
		}
		if many > maxReplay {
			return ErrReplay
		}
		done, err := tx.Exec(ctx, replayEvents, first, last, w.Types, id)
		if err != nil {
			return err
		}
		again = done.RowsAffected()
		return store.Audit(ctx, tx, plans.Audited{Action: "replay", Target: "webhooks/" + id, After: struct {
			From time.Time `json:"from"`
			To   time.Time `json:"to"`
		}{first.UTC(), last.UTC()}})
	})
	return again, err
}
