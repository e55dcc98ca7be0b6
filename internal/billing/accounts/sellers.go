package accounts

import (
	"context"
	"errors"
	"net/mail"
	"reflect"
	"strconv"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// maxNumber is the largest next number that an admin may set for a series.
const maxNumber = int64(1e15 - 1)

// Seller is a seller as the API returns it.
type Seller struct {
	billing.Seller
	CreditNotePrefix string // "" if credit notes share the invoices' numbers
	NextNumber       int64  // for invoices of customers that are not on test clocks
	Change           int64
}

// ETag returns the seller's entity tag, unquoted.
func (s *Seller) ETag() string { return strconv.FormatInt(s.Change, 10) }

// SellerInput is a seller as an admin writes it.
type SellerInput struct {
	billing.Seller
	CreditNotePrefix string
	NextNumber       *int64 // nil keeps the number
}

// PaperColumns lists the columns of the table sellers that documents show. OnPaper returns their scan
// destinations.
const PaperColumns = `key, name, address, country, tax_id, registration, email, payment, footer, prefix`

// OnPaper returns the scan destinations for a row of PaperColumns.
func OnPaper(s *billing.Seller) []any {
	return []any{&s.Key, &s.Name, &s.Address, &s.Country, &s.TaxID, &s.Registration, &s.Email, &s.Payment, &s.Footer, &s.Prefix}
}

const sellerColumns = PaperColumns + `, credit_note_prefix, next_number, change FROM sellers `

func scanSeller(row pgx.CollectableRow) (*Seller, error) {
	s := new(Seller)
	return s, row.Scan(append(OnPaper(&s.Seller), &s.CreditNotePrefix, &s.NextNumber, &s.Change)...)
}

const getSeller = `SELECT ` + sellerColumns + `WHERE key = $1`

// Seller returns a seller, or billing.ErrUnknownSeller.
func (as *Accounts) Seller(ctx context.Context, key string) (*Seller, error) {
	if !plans.ValidKey(key) {
		return nil, billing.ErrUnknownSeller
	}
	return readRow(ctx, as, billing.ErrUnknownSeller, scanSeller, getSeller, key)
}

const listSellers = `SELECT ` + sellerColumns + `WHERE key > $1 ORDER BY key LIMIT $2`

const kindSeller = "seller"

// Sellers returns the sellers in the order of their keys.
func (as *Accounts) Sellers(ctx context.Context, page plans.Page) (*plans.List[*Seller], error) {
	limit, after, err := store.OpenPage(page, kindSeller, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, as.store.Within())
	defer cancel()
	rows, _ := as.pool.Query(ctx, listSellers, after, limit+1)
	all, err := pgx.CollectRows(rows, scanSeller)
	if err != nil {
		return nil, store.Classify(err)
	}
	return store.Paged(all, limit, kindSeller, func(s *Seller) string { return s.Key }), nil
}

// check normalizes the texts of a seller for storage. It returns the errors that can be found without the
// database.
func (in *SellerInput) check() checked {
	var c checked
	if !plans.ValidKey(in.Key) {
		c.add("key", plans.KeyRule)
	}
	c.name("name", &in.Name, true)
	c.address("address", &in.Address)
	c.text("country", in.Country)
	c.text("tax_id", in.TaxID)
	c.text("registration", in.Registration)
	c.text("email", in.Email)
	if parsed, err := mail.ParseAddress(in.Email); in.Email != "" && (err != nil || parsed.Address != in.Email) {
		c.add("email", "must be an email address such as billing@example.com")
	}
	c.lines("payment", in.Payment)
	c.lines("footer", in.Footer)
	c.prefixes(in)
	if in.NextNumber != nil && (*in.NextNumber < 1 || *in.NextNumber > maxNumber) {
		c.add("next_number", "must be between 1 and %d", maxNumber)
	}
	return c
}

const lockSeller = getSeller + ` FOR UPDATE`

const putSeller = `
	INSERT INTO sellers (key, name, address, country, tax_id, registration, email, payment, footer, prefix, credit_note_prefix, change)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
	ON CONFLICT (key) DO UPDATE SET name = excluded.name, address = excluded.address, country = excluded.country, tax_id = excluded.tax_id,
		registration = excluded.registration, email = excluded.email, payment = excluded.payment, footer = excluded.footer,
		prefix = excluded.prefix, credit_note_prefix = excluded.credit_note_prefix, change = excluded.change
	RETURNING next_number`

// leavePrefix saves the next numbers of the prefix that a seller gives up, for a later return to it.
const leavePrefix = `
	INSERT INTO seller_numbers (seller, series, prefix, next_number)
	SELECT s.key, w.series, w.prefix, w.next FROM sellers s,
		LATERAL (VALUES ('live', s.prefix, s.next_number), ('test', 'TEST-' || s.prefix, s.next_test_number)) AS w (series, prefix, next)
	WHERE s.key = $1
	ON CONFLICT (seller, series, prefix) DO UPDATE SET next_number = excluded.next_number`

// takePrefix sets the seller's prefix and its next numbers: the stored numbers if the seller used the prefix
// before, otherwise 1.
const takePrefix = `
	WITH t AS (
		DELETE FROM seller_numbers WHERE seller = $1 AND (series, prefix) IN (('live', $2), ('test', 'TEST-' || $2))
		RETURNING series, next_number)
	UPDATE sellers SET prefix = $2, next_number = coalesce((SELECT next_number FROM t WHERE series = 'live'), 1),
		next_test_number = coalesce((SELECT next_number FROM t WHERE series = 'test'), 1)
	WHERE key = $1`

// callSeller adds a row to seller_calls, so that the worker retries the drafts that wait for the seller's
// name, see WakeNamed.
const callSeller = `INSERT INTO seller_calls (seller) VALUES ($1)`

// skipTo raises the next number of the seller's invoices and records the skip, so that the gap is not an
// error.
const skipTo = `
	WITH s AS (UPDATE sellers SET next_number = $2 WHERE key = $1 RETURNING key, prefix)
	INSERT INTO seller_skips (seller, series, prefix, number) SELECT key, 'live', prefix, $2 FROM s ON CONFLICT DO NOTHING`

// PutSeller writes a seller. created reports whether the seller is new. A precondition is checked if the
// request has one. Finalized invoices keep the former details of the seller. The seller's next numbers stay,
// unless NextNumber or the prefix changes. Drafts that waited for the seller's name are finalized soon.
//
// Errors: model.FieldErrors, plans.ErrPrecondition, plans.ErrExists.
func (as *Accounts) PutSeller(ctx context.Context, in SellerInput, pre plans.Precondition) (s *Seller, created bool, err error) {
	if c := in.check(); len(c.bad) > 0 {
		return nil, false, c.bad
	}
	for _, lines := range []*[]string{&in.Address, &in.Payment, &in.Footer} {
		if *lines == nil {
			*lines = []string{}
		}
	}
	err = as.store.Write(ctx, kindSeller, in.Key, func(ctx context.Context, w *store.Writing) error {
		old, err := oneRow(ctx, w, billing.ErrUnknownSeller, scanSeller, lockSeller, in.Key)
		created = errors.Is(err, billing.ErrUnknownSeller)
		if err != nil && !created {
			return err
		}
		if created {
			old = new(Seller)
		}
		if pre.Given || pre.None {
			if err := pre.Check(!created, old.ETag()); err != nil {
				return err
			}
		}
		if s, err = as.writeSeller(ctx, w, old, &in); err != nil {
			return err
		}
		change := plans.Audited{Action: plans.AuditWrite(created), Target: "sellers/" + in.Key, After: auditSeller(s)}
		if !created {
			change.Before = auditSeller(old)
		}
		return w.Audit(ctx, change)
	})
	return s, created, err
}

// writeSeller writes a seller whose row, if it exists, is locked. old is the stored seller.
func (as *Accounts) writeSeller(ctx context.Context, w *store.Writing, old *Seller, in *SellerInput) (*Seller, error) {
	s := &Seller{in.Seller, in.CreditNotePrefix, old.NextNumber, old.Change}
	if in.NextNumber != nil {
		s.NextNumber = *in.NextNumber
	}
	if reflect.DeepEqual(old, s) {
		return s, store.Unchanged()
	}
	if in.Prefix != old.Prefix || in.CreditNotePrefix != old.CreditNotePrefix {
		if err := checkSeries(ctx, w, old, in); err != nil {
			return nil, err
		}
	}
	if err := moveSeller(ctx, w, old, in); err != nil {
		return nil, err
	}
	s.Change = w.Number
	var next int64
	err := w.QueryRow(ctx, putSeller, in.Key, in.Name, in.Address, in.Country, in.TaxID, in.Registration, in.Email, in.Payment, in.Footer,
		in.Prefix, in.CreditNotePrefix, w.Number).Scan(&next)
	switch {
	case err != nil:
		return nil, err
	case in.NextNumber == nil || *in.NextNumber == next:
		s.NextNumber = next
		return s, nil
	case *in.NextNumber < next:
		return nil, fault("next_number", "may only rise, and the next number of this prefix is "+strconv.FormatInt(next, 10))
	}
	_, err = w.Exec(ctx, skipTo, in.Key, s.NextNumber)
	return s, err
}

// moveSeller saves and restores numbers if the prefix of an existing seller changes. It also calls the worker
// if a seller gets its first name.
func moveSeller(ctx context.Context, w *store.Writing, old *Seller, in *SellerInput) error {
	var err error
	if old.Key != "" && in.Prefix != old.Prefix {
		_, err = w.Exec(ctx, leavePrefix, in.Key)
		if err == nil {
			_, err = w.Exec(ctx, takePrefix, in.Key, in.Prefix)
		}
	}
	if err == nil && old.Key != "" && old.Name == "" && in.Name != "" {
		_, err = w.Exec(ctx, callSeller, in.Key)
	}
	return err
}
