package accounts

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// maxPrefix is the length of the longest prefix of numbers, bytes.
const maxPrefix = 20

// Seller is a seller as it is shown.
type Seller struct {
	billing.Seller
	Change int64
}

// ETag is the seller's entity tag, unquoted.
func (s *Seller) ETag() string { return strconv.FormatInt(s.Change, 10) }

func scanSeller(row pgx.CollectableRow) (*Seller, error) {
	s := new(Seller)
	return s, row.Scan(&s.Key, &s.Name, &s.Address, &s.TaxID, &s.Prefix, &s.Change)
}

const getSeller = `SELECT key, name, address, tax_id, prefix, change FROM sellers WHERE key = $1`

// Seller returns a seller, or billing.ErrUnknownSeller.
func (as *Accounts) Seller(ctx context.Context, key string) (*Seller, error) {
	if !plans.ValidKey(key) {
		return nil, billing.ErrUnknownSeller
	}
	return oneRow(ctx, as.pool, billing.ErrUnknownSeller, scanSeller, getSeller, key)
}

const listSellers = `
	SELECT key, name, address, tax_id, prefix, change FROM sellers WHERE key > $1 ORDER BY key LIMIT $2`

const kindSeller = "seller"

// Sellers returns the sellers in the order of their keys.
func (as *Accounts) Sellers(ctx context.Context, page plans.Page) (*plans.List[*Seller], error) {
	limit, after, err := store.OpenPage(page, kindSeller, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	rows, _ := as.pool.Query(ctx, listSellers, after, limit+1)
	all, err := pgx.CollectRows(rows, scanSeller)
	if err != nil {
		return nil, store.Classify(err)
	}
	return store.Paged(all, limit, kindSeller, func(s *Seller) string { return s.Key }), nil
}

const putSeller = `
	INSERT INTO sellers (key, name, address, tax_id, prefix, change) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (key) DO UPDATE SET name = excluded.name, address = excluded.address, tax_id = excluded.tax_id,
		prefix = excluded.prefix, change = excluded.change`

// gaveLive asks whether a seller has given live numbers of a prefix.
// There is an index of such numbers only.
const gaveLive = `
	SELECT EXISTS (SELECT FROM invoices WHERE seller = $1 AND series = 'live' AND starts_with(prefix, 'TEST-') AND prefix = $2)`

// checkPrefix refuses a prefix with which numbers of test clocks would be the same as live numbers. A live
// number may begin with TEST- where it was given before that was refused.
func (as *Accounts) checkPrefix(ctx context.Context, c *checked, in *billing.Seller) error {
	if strings.HasPrefix(in.Prefix, billing.TestPrefix) {
		c.add("prefix", "must not begin with %s, as the numbers of customers on test clocks do", billing.TestPrefix)
		return nil
	}
	given, err := oneRow(ctx, as.pool, nil, pgx.RowTo[bool], gaveLive, in.Key, billing.TestPrefix+in.Prefix)
	if given {
		c.add("prefix", "must be another one: customers on test clocks would be given numbers that begin with %s%s, and other customers have such numbers", billing.TestPrefix, in.Prefix)
	}
	return err
}

// PutSeller writes a seller. created says whether it is new. A precondition is checked where
// there is one. Invoices that are finalized keep what the seller was. Its next numbers stay. Drafts
// that waited for its name are finalized soon.
//
// Errors: model.FieldErrors, plans.ErrPrecondition, plans.ErrExists.
func (as *Accounts) PutSeller(ctx context.Context, in billing.Seller, pre plans.Precondition) (s *Seller, created bool, err error) {
	var c checked
	if !plans.ValidKey(in.Key) {
		c.add("key", plans.KeyRule)
	}
	c.text("name", in.Name, true)
	c.address("address", in.Address)
	c.text("tax_id", in.TaxID, false)
	c.text("prefix", in.Prefix, false)
	if len(in.Prefix) > maxPrefix {
		c.add("prefix", "must be at most %d bytes", maxPrefix)
	}
	if len(c.bad) == 0 {
		err = as.checkPrefix(ctx, &c, &in)
	}
	if len(c.bad) > 0 {
		return nil, false, c.bad
	}
	if err != nil {
		return nil, false, err
	}
	if in.Address == nil {
		in.Address = []string{}
	}
	err = as.store.Write(ctx, kindSeller, in.Key, func(ctx context.Context, w *store.Writing) error {
		old, err := oneRow(ctx, w, billing.ErrUnknownSeller, scanSeller, getSeller, in.Key)
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
		if s = old; reflect.DeepEqual(old.Seller, in) {
			return store.Unchanged()
		}
		s = &Seller{in, w.Number}
		if _, err = w.Exec(ctx, putSeller, in.Key, in.Name, in.Address, in.TaxID, in.Prefix, w.Number); err != nil {
			return err
		}
		change := plans.Audited{Action: madeOr(created), Target: "sellers/" + in.Key, After: in}
		if !created {
			change.Before = old.Seller
		}
		return w.Audit(ctx, change)
	})
	return s, created, err
}
