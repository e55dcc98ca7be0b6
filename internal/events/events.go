package events

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/postgres"
)

// The types of events.
const (
	LimitThreshold = "limit.threshold"
	CapThreshold   = "cap.threshold"

	InvoiceDrafted   = "invoice.drafted"
	InvoiceFinalized = "invoice.finalized"
	InvoicePaid      = "invoice.paid"
	InvoiceOverdue   = "invoice.overdue"
	InvoiceVoid      = "invoice.void"
	InvoiceHeld      = "invoice.held"
	InvoiceCredited  = "invoice.credited"

	PaymentNoted    = "payment.noted"
	PaymentReversed = "payment.reversed"

	CreditGranted   = "credit.granted"
	CreditExpired   = "credit.expired"
	CreditWithdrawn = "credit.withdrawn"

	CustomerCreated       = "customer.created"
	CustomerPlanChanged   = "customer.plan_changed"
	CustomerPlanRequested = "customer.plan_requested"
	CustomerChangeDropped = "customer.change_dropped"
	CustomerSuspended     = "customer.suspended"
	CustomerResumed       = "customer.resumed"
	CustomerEnded         = "customer.ended"
	CustomerArchived      = "customer.archived"

	PlanPublished   = "plan.published"
	WebhookDisabled = "webhook.disabled"
)

// Types lists all types of events.
var Types = []string{
	LimitThreshold, CapThreshold,
	InvoiceDrafted, InvoiceFinalized, InvoicePaid, InvoiceOverdue, InvoiceVoid, InvoiceHeld, InvoiceCredited,
	PaymentNoted, PaymentReversed,
	CreditGranted, CreditExpired, CreditWithdrawn,
	CustomerCreated, CustomerPlanChanged, CustomerPlanRequested, CustomerChangeDropped, CustomerSuspended, CustomerResumed, CustomerEnded, CustomerArchived,
	PlanPublished, WebhookDisabled,
}

// Known reports whether an event type of this name exists.
func Known(name string) bool { return slices.Contains(Types, name) }

// Event is an event before it has an id.
type Event struct {
	Type      string
	At        int64  // µs, by the customer's clock
	Customer  int64  // the id of the customer's row; 0: of none
	TestClock string // the key of the customer's test clock; "": real time
	Data      client.EventData
}

// row is a row of the table outbox. PostgreSQL assigns the column seq.
type row struct {
	Type      string           `json:"type"`
	At        int64            `json:"at"`
	Customer  *int64           `json:"customer"`
	TestClock *string          `json:"test_clock"`
	Data      client.EventData `json:"data"`
}

const insertEvents = `
	INSERT INTO outbox (type, at, customer, test_clock, data)
	SELECT type, at, customer, test_clock, data FROM jsonb_populate_recordset(NULL::outbox, $1)`

// Queue adds to a batch the statement that inserts events, if there are any. The batch must belong to the
// transaction that the events report.
func Queue(b *pgx.Batch, all ...Event) error {
	rows := make([]row, len(all))
	for i := range all {
		e := &all[i]
		rows[i] = row{Type: e.Type, At: e.At, Data: e.Data}
		if e.Customer != 0 {
			rows[i].Customer = &e.Customer
		}
		if e.TestClock != "" {
			rows[i].TestClock = &e.TestClock
		}
	}
	return postgres.QueueRows(b, insertEvents, rows)
}

// Write inserts events in the transaction that the events report.
func Write(ctx context.Context, tx postgres.Querier, all ...Event) error {
	b := new(pgx.Batch)
	if err := Queue(b, all...); err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}

// Both statements of Scrub follow the lock order of the Numberer, which locks the rows of outbox in the order of
// their key. If the Numberer moves a row meanwhile, the second statement finds the row in events.
const (
	scrubOutbox = `
		WITH theirs AS (
			SELECT written_at, seq FROM outbox WHERE customer = $1 AND type LIKE 'credit.%' ORDER BY written_at, seq FOR UPDATE)
		UPDATE outbox SET data = data - 'id' WHERE (written_at, seq) IN (SELECT written_at, seq FROM theirs)`
	scrubEvents = `UPDATE events SET data = data - 'id' WHERE customer = $1 AND type LIKE 'credit.%'`
)

// Scrub removes the ids of credits from the events of an erased customer, because a person chose these ids. It
// runs in the transaction that erases the customer.
func Scrub(ctx context.Context, tx pgx.Tx, customer int64) error {
	_, err := tx.Exec(ctx, scrubOutbox, customer)
	if err == nil {
		_, err = tx.Exec(ctx, scrubEvents, customer)
	}
	return err
}
