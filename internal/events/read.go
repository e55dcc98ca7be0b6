package events

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/postgres"
)

// Shown is a stored event with its id.
type Shown struct {
	ID        int64
	Type      string
	At        int64   // µs, by the customer's clock
	Customer  *string // the key as it is now; nil: of none, or forgotten
	TestClock *string
	Data      []byte // JSON
}

// Show returns the event in the form in which the API returns it and webhooks receive it.
func (e Shown) Show() client.Event {
	return client.Event{
		ID: e.ID, Type: e.Type, At: time.UnixMicro(e.At).UTC(), Customer: e.Customer, TestClock: e.TestClock, Data: e.Data,
	}
}

// Filter selects events.
type Filter struct {
	After    int64  // those with a higher id
	Type     string // "": all
	Customer int64  // the id of a customer's row; 0: all
}

const shownColumns = `
	SELECT e.id, e.type, e.at, c.key, e.test_clock, e.data FROM events e LEFT JOIN customers c ON c.id = e.customer WHERE e.id > $1`

// query returns the statement of a filter. It contains only the conditions that the filter sets, so that
// PostgreSQL finds the right index.
func (f *Filter) query(rows int) (statement string, args []any) {
	var where strings.Builder
	args = []any{f.After}
	arg := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	where.WriteString(shownColumns)
	if f.Type != "" {
		where.WriteString(` AND e.type = ` + arg(f.Type))
	}
	if f.Customer != 0 {
		where.WriteString(` AND e.customer = ` + arg(f.Customer))
	}
	where.WriteString(` ORDER BY e.id LIMIT ` + arg(rows))
	return where.String(), args
}

// Read returns the first events that match a filter, at most most of them, in the order of their ids.
func Read(ctx context.Context, q postgres.Querier, f Filter, rows int) ([]Shown, error) {
	statement, args := f.query(rows)
	found, _ := q.Query(ctx, statement, args...) // a failed Query is the error of CollectRows
	return pgx.CollectRows(found, pgx.RowToStructByPos[Shown])
}
