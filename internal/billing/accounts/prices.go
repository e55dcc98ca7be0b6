package accounts

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/billing/timeline"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/usage"
)

// OwnPrice is a customer's own price. It applies to the billing periods that start at From or later, µs.
type OwnPrice struct {
	plans.Price
	From int64
}

const ownPrices = `
	SELECT meter, from_at, price FROM (
		SELECT DISTINCT ON (meter) meter, from_at, price FROM customer_prices
		WHERE customer_id = $1 AND ($2 = '' OR meter = $2) ORDER BY meter, change DESC) p
	WHERE price IS NOT NULL ORDER BY meter`

func scanOwnPrice(row pgx.CollectableRow) (*OwnPrice, error) {
	p := new(OwnPrice)
	var meter string
	var raw []byte
	if err := row.Scan(&meter, &p.From, &raw); err != nil {
		return nil, err
	}
	err := json.Unmarshal(raw, &p.Price)
	p.Meter = meter
	return p, err
}

// OwnPrices returns the customer's own prices, by meter. A customer has few such prices, at most one for each
// meter. Errors: plans.ErrUnknownCustomer, billing.ErrAnonymous.
func (as *Accounts) OwnPrices(ctx context.Context, key string) ([]*OwnPrice, error) {
	ctx, cancel := context.WithTimeout(ctx, as.store.Within())
	defer cancel()
	id, _, err := Find(ctx, as.pool, key)
	if err != nil {
		return nil, store.Classify(err)
	}
	rows, _ := as.pool.Query(ctx, ownPrices, id, "")
	all, err := pgx.CollectRows(rows, scanOwnPrice)
	return all, store.Classify(err)
}

// OwnPrice returns the customer's own price for one meter, or billing.ErrUnknownPrice.
func (as *Accounts) OwnPrice(ctx context.Context, key, meter string) (*OwnPrice, error) {
	id, _, err := Find(ctx, as.pool, key)
	if err != nil {
		return nil, store.Classify(err)
	}
	return readRow(ctx, as, billing.ErrUnknownPrice, scanOwnPrice, ownPrices, id, meter)
}

const insertOwnPrice = `
	INSERT INTO customer_prices (customer_id, meter, change, from_at, at, price) VALUES ($1, $2, $3, $4, $5, $6)`

// PutOwnPrice writes a customer's own price for a meter. A nil price restores the plan's price. The change
// applies from the next billing period. Before the first billed hit, the change also applies to the first
// period. created reports whether the customer had no own price for the meter before.
//
// Errors: plans.ErrUnknownCustomer, plans.ErrArchived, billing.ErrAnonymous, billing.ErrUnknownPrice,
// billing.ErrTooManyTerms, model.FieldErrors.
func (as *Accounts) PutOwnPrice(ctx context.Context, key, meter string, price *plans.Price) (p *OwnPrice, created bool, err error) {
	if price != nil {
		if err := plans.CheckPrice(price); err != nil {
			return nil, false, err
		}
		price.Meter = meter
	}
	err = as.store.ChangeBilling(ctx, key, func(ctx context.Context, w *store.Writing, of *plans.Customer) error {
		c, line, err := as.standing(ctx, w, of.ID)
		if err != nil {
			return err
		}
		if c == nil {
			return billing.ErrAnonymous
		}
		if price != nil {
			if err := onMeter(ctx, w, price, of); err != nil {
				return err
			}
		}
		old, err := oneRow(ctx, w, billing.ErrUnknownPrice, scanOwnPrice, ownPrices, c.ID, meter)
		created = errors.Is(err, billing.ErrUnknownPrice)
		switch {
		case err != nil && !created, created && price == nil:
			return err
		case !created && price != nil && reflect.DeepEqual(old.Price, *price):
			p = old
			return store.Unchanged()
		}
		if p, err = as.writePrice(ctx, w, c, line, meter, price); err != nil {
			return err
		}
		change := plans.Audited{Action: plans.AuditWrite(created), Target: "customers/" + key + "/prices/" + meter, Customer: c.ID}
		if !created {
			change.Before = auditPrice(old)
		}
		if price == nil {
			change.Action = plans.AuditDelete
		} else {
			change.After = auditPrice(p)
		}
		return w.Audit(ctx, change)
	})
	return p, created, err
}

const allocates = `
	SELECT EXISTS (SELECT FROM plan_versions v JOIN plans p ON p.id = v.plan_id, jsonb_array_elements(v.document -> 'limits') l
		WHERE p.key = $1 AND v.version = $2 AND l ->> 'meter' = $3 AND l ->> 'algorithm' = 'allocation')`

// onMeter checks that the meter of a customer's price exists, and that the price fits the meter's kind and
// the customer's plan.
func onMeter(ctx context.Context, w *store.Writing, price *plans.Price, of *plans.Customer) error {
	ids, err := store.MeterIDs(ctx, w, []string{price.Meter})
	if err != nil {
		return err
	}
	id, declared := ids[price.Meter]
	if !declared {
		return fault("meter", "no such meter: declare it first with PUT /v1/meters/"+plans.Shorten(price.Meter))
	}
	meter := plans.Meter{ID: id}
	if meter.Kind() == plans.KindFlow {
		var allocated bool
		if err := w.QueryRow(ctx, allocates, of.Plan, of.EffectiveVersion, price.Meter).Scan(&allocated); err != nil {
			return err
		}
		if allocated {
			return fault("meter", plans.AllocatedFlow)
		}
	}
	return plans.ForMeter(price, meter.Kind())
}

func (as *Accounts) writePrice(ctx context.Context, w *store.Writing, c *Customer, line *timeline.Timeline, meter string,
	price *plans.Price,
) (*OwnPrice, error) {
	from, restart, err := as.priceFrom(ctx, w, c, line, meter)
	if err != nil {
		return nil, err
	}
	var stored []byte
	own := &OwnPrice{From: from}
	if price != nil {
		own.Price = *price
		if stored, err = json.Marshal(price); err != nil {
			return nil, err
		}
	}
	if _, err := w.Exec(ctx, insertOwnPrice, c.ID, meter, w.Number, from, c.Now, stored); err != nil {
		return nil, err
	}
	if err := as.checkTerms(ctx, w, c, c.Now); err != nil {
		return nil, err
	}
	if restart && c.Open != nil {
		if err := as.reopen(ctx, w, c, true); err != nil {
			return nil, err
		}
		return own, as.SetDue(ctx, w, c.ID) // the opening invoice may need a new draft
	}
	return own, nil
}

// priceFrom returns the start of the first period to which a new price applies. restart reports whether that
// period is the open one.
func (as *Accounts) priceFrom(ctx context.Context, w *store.Writing, c *Customer, line *timeline.Timeline, meter string) (from int64, restart bool, err error) {
	if c.Open == nil {
		_, from = line.Periods.Period(c.Now)
		return from, false, nil
	}
	if c.Now < c.Open.Start && c.Open.N == 0 {
		return c.Open.Start, true, nil
	}
	running, ok, err := line.At(*c.Open, max(c.Now, c.Open.Start))
	if err != nil {
		return 0, false, err
	}
	if !ok {
		_, from = line.Periods.Period(c.Now)
		return from, false, nil
	}
	if c.chain+c.n > 0 || running.Start != c.Open.Start {
		return running.End, false, nil
	}
	hit, err := as.wasHit(ctx, w, c, meter)
	if hit || err != nil {
		return running.End, false, err
	}
	return c.Open.Start, true, nil
}

// wasHit reports whether the first period has a billed hit, or a hit on the meter that is to get a price. It
// first marks the usage, so that concurrent hits count after the new price.
func (as *Accounts) wasHit(ctx context.Context, w *store.Writing, c *Customer, meter string) (hit bool, err error) {
	meters := []string{meter}
	if w.Open != nil {
		meters = append(meters, w.Open.Meters...)
	}
	if _, err := w.Mark(ctx, c.ID, c.Now, meters); err != nil {
		return false, err
	}
	ids, err := store.MeterIDs(ctx, w, meters)
	if err != nil {
		return false, err
	}
	return usage.Any(ctx, w, c.ID, slices.Collect(maps.Values(ids)), c.Open.Start)
}
