package invoices

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/accounts"
	"quotad/internal/billing/assembly"
	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
)

const creditColumns = ` id, kind, amount_minor, left_minor, currency, priority, expires_at, at, seq FROM credits `

func scanCredit(row pgx.CollectableRow) (c billing.Credit, err error) {
	return c, row.Scan(&c.ID, &c.Kind, &c.AmountMinor, &c.LeftMinor, &c.Currency, &c.Priority, &c.ExpiresAt, &c.At, &c.Seq)
}

const creditByID = `SELECT` + creditColumns + `WHERE customer_id = $1 AND id = $2`

const creditPayload = `SELECT payload FROM credits WHERE customer_id = $1 AND id = $2`

// Grant grants a credit to a customer, once for each id; ids are never reused. It returns the credit's
// present state and the customer's test clock. Errors: the errors of accounts.OnCustomer, model.FieldErrors
// for another currency, a reserved id or an expiry that is over, billing.ErrOtherPayload.
func (is *Invoices) Grant(ctx context.Context, key string, in billing.Credit, payload int64) (made billing.Credit, clock string, replayed bool, err error) {
	err = is.accounts.OnCustomer(ctx, key, func(ctx context.Context, tx pgx.Tx, c *accounts.Customer) error {
		clock = c.Clock
		var stored int64
		switch err := tx.QueryRow(ctx, creditPayload, c.ID, in.ID).Scan(&stored); {
		case err == nil && stored != payload:
			return billing.ErrOtherPayload
		case err == nil:
			replayed = true
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		default:
			if err := grant(ctx, tx, c, &in, payload); err != nil {
				return err
			}
			err := store.Audit(ctx, tx, plans.Audited{
				Action: plans.AuditCreate, Target: "customers/" + key + "/credits/" + in.ID, Customer: c.ID, After: auditCredit(&in),
			})
			if err != nil {
				return err
			}
		}
		rows, _ := tx.Query(ctx, creditByID, c.ID, in.ID)
		made, err = pgx.CollectExactlyOneRow(rows, scanCredit)
		return err
	})
	return made, clock, replayed, err
}

func grant(ctx context.Context, tx pgx.Tx, c *accounts.Customer, in *billing.Credit, payload int64) error {
	bad := model.FieldErrors{}
	if strings.HasPrefix(in.ID, carriedPrefix) {
		bad = append(bad, model.FieldError{Field: "id", Detail: "must not begin with " + carriedPrefix + ", as those of credits do that invoices leave"})
	}
	if in.ExpiresAt != nil && *in.ExpiresAt <= c.Now {
		bad = append(bad, model.FieldError{Field: "expires_at", Detail: "must be in the future, by the customer's clock"})
	}
	if wrong, ok := errors.AsType[model.FieldErrors](c.CheckCurrency(in.Currency)); ok {
		bad = append(bad, wrong...)
	}
	if len(bad) > 0 {
		return bad
	}
	b := new(pgx.Batch)
	credit := creditRow{c.ID, in.ID, in.Kind, in.AmountMinor, in.Currency, in.Priority, in.ExpiresAt, c.Now, payload}
	err := errors.Join(
		postgres.QueueRows(b, insertCredits, []creditRow{credit}),
		postgres.QueueRows(b, bookEntries, []entryRow{{Customer: c.ID, Credit: in.ID, Kind: billing.EntryGranted, AmountMinor: in.AmountMinor, At: c.Now}}),
		events.Queue(b, creditEvent(events.CreditGranted, c, &credit, in.AmountMinor, c.Now)),
	)
	if err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}

// creditRow is a row of credits. The database sets seq.
type creditRow struct {
	Customer    int64  `json:"customer_id"`
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Priority    int    `json:"priority"`
	ExpiresAt   *int64 `json:"expires_at"`
	At          int64  `json:"at"`
	Payload     int64  `json:"payload"`
}

const insertCredits = `
	INSERT INTO credits (customer_id, id, kind, amount_minor, left_minor, currency, priority, expires_at, at, payload)
	SELECT customer_id, id, kind, amount_minor, 0, currency, priority, expires_at, at, payload
	FROM jsonb_populate_recordset(NULL::credits, $1)`

// entryRow is a row of credit_entries. The database numbers the entries of each credit in the column n.
type entryRow struct {
	Customer    int64   `json:"customer_id"`
	Credit      string  `json:"credit_id"`
	Kind        string  `json:"kind"`
	AmountMinor int64   `json:"amount_minor"`
	Invoice     *string `json:"invoice_id"`
	At          int64   `json:"at"`

	// PaidInvoice and PaidN identify a payment by credits after finalization. They are set on applied and
	// returned amounts.
	PaidInvoice *string `json:"paid_invoice"`
	PaidN       *int    `json:"paid_n"`

	// Request, Payload and Reason are set on withdrawals.
	Request *string `json:"request"`
	Payload *int64  `json:"payload"`
	Reason  *string `json:"reason"`
}

// bookEntries books at most one entry for each credit and updates the credit's remaining amount.
const bookEntries = `
	WITH booked AS (
		UPDATE credits c SET left_minor = c.left_minor + r.amount_minor
		FROM jsonb_populate_recordset(NULL::credit_entries, $1) r WHERE c.customer_id = r.customer_id AND c.id = r.credit_id
		RETURNING c.customer_id, c.id, r.kind, r.amount_minor, r.invoice_id, r.at, r.paid_invoice, r.paid_n, r.request, r.payload, r.reason)
	INSERT INTO credit_entries (customer_id, credit_id, n, kind, amount_minor, invoice_id, at, paid_invoice, paid_n, request, payload, reason)
	SELECT b.customer_id, b.id, 1 + coalesce((
		SELECT max(e.n) FROM credit_entries e WHERE e.customer_id = b.customer_id AND e.credit_id = b.id), 0),
		b.kind, b.amount_minor, b.invoice_id, b.at, b.paid_invoice, b.paid_n, b.request, b.payload, b.reason
	FROM booked b`

// defaultPriority is the priority of a credit without an explicit one.
const defaultPriority = 50

// carried returns the credit that an invoice grants, for example because its total is below 0. The credit's
// id contains the invoice's id.
func carried(i *billing.Invoice, amount, at int64) (creditRow, entryRow) {
	id := carriedPrefix + i.ID
	credit := creditRow{
		Customer: i.Customer, ID: id, Kind: billing.CreditCarried, AmountMinor: amount, Currency: i.Currency,
		Priority: defaultPriority, At: at,
	}
	return credit, entryRow{Customer: i.Customer, Credit: id, Kind: billing.EntryGranted, AmountMinor: amount, Invoice: &i.ID, At: at}
}

// carriedPrefix begins the ids of credits that invoices grant. Other ids must not begin with it.
const carriedPrefix = "carried:"

// queueCredits books the credits that pay invoices, and grants a credit for each invoice with a total below
// 0.
func queueCredits(b *pgx.Batch, final []*Task) error {
	var entries []entryRow
	var credits []creditRow
	var granted []entryRow
	var tells []events.Event
	for _, t := range final {
		r := &t.Result
		if r.Invoice.Held != "" {
			continue
		}
		for _, e := range r.Applied {
			entries = append(entries, entryRow{Customer: t.c.ID, Credit: e.Credit, Kind: e.Kind, AmountMinor: e.AmountMinor, Invoice: &r.Invoice.ID, At: t.at})
		}
		if r.CarriedMinor > 0 {
			credit, entry := carried(&r.Invoice, r.CarriedMinor, t.at)
			credits, granted = append(credits, credit), append(granted, entry)
			tells = append(tells, creditEvent(events.CreditGranted, t.c, &credit, credit.AmountMinor, t.at))
		}
	}
	return errors.Join(postgres.QueueRows(b, bookEntries, entries), postgres.QueueRows(b, insertCredits, credits), postgres.QueueRows(b, bookEntries, granted),
		events.Queue(b, tells...))
}

// ExpireCredits books the expiry of credits for customers that the transaction has locked. at contains each
// customer's instant. A credit that expires at that instant can no longer pay an invoice, see
// accounts.QueueSteps.
func ExpireCredits(ctx context.Context, tx pgx.Tx, of map[int64]*accounts.Customer, at map[int64]int64) error {
	var id int64
	var c billing.Credit
	var entries []entryRow
	var tells []events.Event
	err := postgres.ForEach(ctx, tx, []any{&id, &c.ID, &c.Kind, &c.AmountMinor, &c.LeftMinor, &c.Currency, &c.Priority, &c.ExpiresAt, &c.At, &c.Seq},
		func() error {
			for _, e := range assembly.Expired([]billing.Credit{c}, at[id]) {
				entries = append(entries, entryRow{Customer: id, Credit: e.Credit, Kind: e.Kind, AmountMinor: e.AmountMinor, At: *c.ExpiresAt})
				credit, expired := creditRow{ID: c.ID, Kind: c.Kind, AmountMinor: c.AmountMinor, Currency: c.Currency}, -e.AmountMinor
				tell := creditEvent(events.CreditExpired, of[id], &credit, c.LeftMinor-expired, *c.ExpiresAt)
				tell.Data.ExpiredMinor = &expired
				tells = append(tells, tell)
			}
			return nil
		}, creditsLeft, slices.Collect(maps.Keys(at)))
	if err != nil {
		return err
	}
	b := new(pgx.Batch)
	if err := errors.Join(postgres.QueueRows(b, bookEntries, entries), events.Queue(b, tells...)); err != nil {
		return err
	}
	return postgres.Send(ctx, tx, b)
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

const creditsLeft = `
	SELECT customer_id, id, kind, amount_minor, left_minor, currency, priority, expires_at, at, seq FROM credits
	WHERE customer_id = ANY ($1) AND left_minor > 0`

// creditsOfInvoice sums the credits that pay an invoice. Entries have the invoice as invoice_id if they were
// applied at finalization or returned when the invoice became void. All other entries name the payment,
// except that entries of credit notes may name only the invoice.
const creditsOfInvoice = `
	SELECT e.credit_id, c.kind, e.payment, -sum(e.amount_minor)::bigint FROM (
		SELECT customer_id, credit_id, 0 AS payment, amount_minor, n FROM credit_entries
		WHERE invoice_id = $1::uuid AND kind IN ('applied', 'returned') AND paid_invoice IS NULL
		UNION ALL
		SELECT customer_id, credit_id, coalesce(paid_n, 0), amount_minor, n FROM credit_entries WHERE paid_invoice = $1::uuid
	) e JOIN credits c ON c.customer_id = e.customer_id AND c.id = e.credit_id
	GROUP BY e.customer_id, e.credit_id, c.kind, e.payment, c.priority, c.expires_at, c.seq HAVING sum(e.amount_minor) < 0
	ORDER BY e.payment, c.priority, c.expires_at NULLS LAST, c.kind <> 'promotional', c.seq`

// appliedTo returns the credits that pay an invoice, in the order in which they were applied.
func appliedTo(ctx context.Context, q postgres.Querier, i *billing.Invoice) ([]assembly.Applied, error) {
	rows, _ := q.Query(ctx, creditsOfInvoice, i.ID)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a assembly.Applied, err error) {
		return a, row.Scan(&a.Credit, &a.Kind, &a.Payment, &a.Minor)
	})
}

// returnedEntry returns the entry that restores a credit's payment of an invoice. by is the id of the credit
// note that returns the amount, or of the invoice itself if it becomes void.
func returnedEntry(c *accounts.Customer, i *billing.Invoice, a assembly.Applied, by string) entryRow {
	e := entryRow{Customer: c.ID, Credit: a.Credit, Kind: billing.EntryReturned, AmountMinor: a.Minor, At: c.Now}
	switch {
	case a.Payment > 0:
		e.PaidInvoice, e.PaidN = &i.ID, &a.Payment
	case by != i.ID:
		e.PaidInvoice = &i.ID
	}
	if by != i.ID || a.Payment == 0 {
		e.Invoice = &by
	}
	return e
}

const liveOn = `
	UPDATE credits SET expires_at = greatest(expires_at, $3) WHERE customer_id = $1 AND id = ANY ($2) AND expires_at IS NOT NULL`

// queueReturned returns credits that paid an invoice and extends their expiry.
func queueReturned(b *pgx.Batch, c *accounts.Customer, i *billing.Invoice, applied []assembly.Applied) error {
	var ids []string
	for _, a := range applied { // in separate statements, because a credit may have paid twice
		ids = append(ids, a.Credit)
		if err := postgres.QueueRows(b, bookEntries, []entryRow{returnedEntry(c, i, a, i.ID)}); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		b.Queue(liveOn, c.ID, ids, c.Now+billing.ReturnedFor)
	}
	return nil
}
