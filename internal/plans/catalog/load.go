package catalog

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/singleflight"

	"quotad/internal/cache"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
)

// errOvertaken is returned when changes arrive faster than the changed objects can be read.
var errOvertaken = fmt.Errorf("%w: changes overtook every attempt to read", session.ErrBusy)

// terms returns the present terms of a customer, from memory or from the database.
func (c *Catalog) terms(ctx context.Context, key string) (*terms, error) {
	if !plans.ValidCustomerKey(key) {
		return nil, plans.ErrUnknownCustomer
	}
	for range maxAttempts {
		m := c.memory.Load()
		applied := m.applied.Load()
		entry, err := c.customer(ctx, m, key)
		if err != nil {
			return nil, err
		}
		if t := entry.current(); t != nil {
			t.rightAsOf(applied)
			return t, nil
		}
		t, err := c.termsFor(ctx, m, entry)
		if err == nil && entry.capped {
			err = c.capTerms(ctx, m, t, entry.terms.Load())
		}
		if err != nil {
			return nil, err
		}
		// Each part was valid when it was read. The parts were true at one moment only if all are still valid.
		// Two callers may build terms at once, in which case the later terms replace equal terms.
		if t.valid() && c.memory.Load() == m {
			t.rightAsOf(applied)
			entry.terms.Store(t)
			return t, nil
		}
	}
	return nil, errOvertaken
}

// termsFor builds the terms of a customer's entry. The caller checks whether they are still valid.
func (c *Catalog) termsFor(ctx context.Context, m *memory, entry *customerEntry) (*terms, error) {
	var clock *clockEntry
	if entry.clock != "" {
		var err error
		if clock, err = c.clock(ctx, m, entry.clock); err != nil {
			return nil, err
		}
	}
	plan, version, err := c.versionOn(ctx, m, &entry.onPlan)
	if err != nil {
		return nil, err
	}
	now, s := entry.instant(clock), entry.scheduled
	if !s.counts(now, clock) {
		t := newTerms(m.generation, entry, now, &entry.onPlan, plan, clock, version, nil)
		if s != nil { // so that the new plan is in memory at its instant, even in an outage
			if plan, next, err := c.versionOn(ctx, m, &s.onPlan); err == nil {
				t.next = newTerms(m.generation, entry, s.at, &s.onPlan, plan, clock, next, version)
			}
		}
		return t, nil
	}
	plan, next, err := c.versionOn(ctx, m, &s.onPlan)
	if err != nil {
		return nil, err
	}
	return newTerms(m.generation, entry, now, &s.onPlan, plan, clock, next, version), nil
}

// versionOn returns a customer's plan and the version of the plan in force for the customer.
func (c *Catalog) versionOn(ctx context.Context, m *memory, on *onPlan) (*planEntry, *version, error) {
	plan, err := c.plan(ctx, m, on.plan)
	if err != nil {
		return nil, nil, err
	}
	v, err := c.version(ctx, m, versionKey{plan.id, on.effective(plan)})
	return plan, v, err
}

// recall returns a fact from memory or reads it. Simultaneous callers share one read. A fact that was
// read is cached only after all changes up to its number are applied here.
func recall[V interface{ read() *fact }](ctx context.Context, c *Catalog, m *memory, kind, key string,
	known func() (V, bool), keep func(V), load func(context.Context) (V, error),
) (V, error) {
	for range maxAttempts {
		if v, ok := known(); ok && v.read().valid() {
			return v, nil
		}
		v, err := fly(ctx, c.options.Within, &m.flights, kind+" "+key, func(ctx context.Context) (V, error) {
			v, err := load(ctx)
			if err == nil {
				err = c.CatchUp(ctx, v.read().asOf)
			}
			if err == nil {
				keep(v)
			}
			return v, err
		})
		// A valid fact can be used even if there was no room to cache it. An invalid fact may come from a read
		// that began before this call, so try again.
		if err != nil || v.read().valid() {
			return v, err
		}
	}
	var none V
	return none, errOvertaken
}

// fly runs do once for all simultaneous callers with the same name (singleflight). do has its own
// deadline, so that it still serves the other callers if the first caller gives up.
func fly[V any](ctx context.Context, within time.Duration, group *singleflight.Group, name string, do func(context.Context) (V, error)) (V, error) {
	landed := group.DoChan(name, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return do(ctx)
	})
	var none V
	select {
	case r := <-landed:
		if r.Err != nil {
			return none, store.Classify(r.Err)
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return none, store.Classify(ctx.Err())
	}
}

// entryOfCustomer reads a customer. EXISTS comes first because few customers have overrides or rates of
// their own.
const entryOfCustomer = `
	SELECT (SELECT number FROM change_number), c.key, c.id, c.change, p.key, coalesce(c.pinned_version, 0),
		c.joined_version, c.timezone, c.billing_anchor, coalesce(t.key, ''), c.anonymous, c.features, c.former_periods, c.cuts,
		CASE WHEN EXISTS (SELECT FROM overrides WHERE customer_id = c.id) THEN (
			SELECT jsonb_object_agg(o.limit_name, jsonb_build_object('limit', o."limit", 'burst', o.burst, 'expires_at', o.expires_at))
			FROM overrides o WHERE o.customer_id = c.id) ELSE '{}' END,
		CASE WHEN EXISTS (SELECT FROM limit_rates WHERE customer_id = c.id) THEN (
			SELECT jsonb_object_agg(r.limit_name, jsonb_build_object('change', r.change, 'at', r.at, 'rates', r.rates, 'until', r.until))
			FROM limit_rates r WHERE r.customer_id = c.id) ELSE '{}' END,
		c.suspended_at, c.suspended_reason,
		(SELECT a.ends_at FROM billing_accounts a WHERE a.customer_id = c.id AND a.after_end = 'block'),
		s.limits_at, coalesce(s.change, 0), coalesce(q.key, ''), coalesce(s.joined_version, 0), coalesce(s.pinned_version, 0),
		EXISTS (SELECT FROM caps WHERE customer_id = c.id)
	FROM customers c JOIN plans p ON p.id = c.plan_id LEFT JOIN test_clocks t ON t.id = c.test_clock_id
	LEFT JOIN customer_terms s ON s.customer_id = c.id AND s.waits LEFT JOIN plans q ON q.id = s.plan_id
	WHERE c.archived_at IS NULL`

// scanEntry reads a row of entryOfCustomer. An error with a key is about the stored data of that
// customer, and an error without a key is about the read. The caller sets the instant of the read
// (reached) by the node's clock, because a step of the database's clock must not end an override early.
func (m *memory) scanEntry(row pgx.Row) (key string, e *customerEntry, err error) {
	e = &customerEntry{known: true}
	var asOf int64
	var timezone, anchor string
	var features, former, overrides, rates []byte
	var cuts []int64
	var suspended *time.Time
	var reason string
	var next scheduled
	var nextAt *int64
	err = row.Scan(&asOf, &key, &e.id, &e.change, &e.plan, &e.pinned, &e.joined, &timezone, &anchor, &e.clock, &e.anonymous, &features, &former, &cuts,
		&overrides, &rates,
		&suspended, &reason, &e.ends, &nextAt, &next.change, &next.plan, &next.joined, &next.pinned, &e.capped)
	if err != nil {
		return "", nil, err
	}
	e.fact = m.fact(store.KindCustomer, key, asOf)
	if nextAt != nil {
		next.at = *nextAt
		e.scheduled = &next
	}
	if suspended != nil {
		e.suspension = &plans.Suspension{Reason: reason, At: suspended.UTC()}
	}
	var before []plans.FormerPeriods
	if len(former) > emptyDocument {
		err = plans.ReadStored(former, &before)
	}
	if err == nil && len(overrides) > emptyDocument {
		err = plans.ReadStored(overrides, &e.overrides)
	}
	if err == nil && len(rates) > emptyDocument {
		err = plans.ReadStored(rates, &e.rates)
	}
	if err == nil && len(features) > emptyDocument {
		e.features, err = plans.ReadFeatures(features)
	}
	if err == nil {
		e.periods, err = plans.StoredPeriods(key, timezone, anchor, before, cuts)
	}
	if err != nil {
		return key, nil, err
	}
	return key, e, nil
}

// emptyDocument is the length of {} and []. Most customers have only such documents, and parsing JSON
// costs more than reading all other columns.
const emptyDocument = 2

// errGone is a plans.ErrUnknownCustomer for the key of an archived customer. A hit never creates another
// customer with such a key.
var errGone = fmt.Errorf("%w", plans.ErrUnknownCustomer)

// customer returns a customer's entry or the error plans.ErrUnknownCustomer. keep decides which unknown
// customers are cached.
func (c *Catalog) customer(ctx context.Context, m *memory, key string) (*customerEntry, error) {
	for range maxAttempts {
		e, ok := m.customers.Get(key, 0)
		if !ok {
			e, ok = m.unknown.Get(key, 0)
		}
		if !ok {
			if e = m.unpack(key); e != nil && e.valid() {
				remember(m.customers, key, e)
				ok = true
			}
		}
		if !ok || !e.valid() {
			var err error
			if e, err = c.readCustomer(ctx, m, key); err != nil {
				return nil, err
			}
		}
		switch {
		case !e.valid(): // a change was made during the read, so try again
		case e.known:
			return e, nil
		case e.gone:
			return nil, errGone
		default:
			return nil, plans.ErrUnknownCustomer
		}
	}
	return nil, errOvertaken
}

// keep caches a customer's entry, or the fact that the customer does not exist.
func (c *Catalog) keep(m *memory, key string, e *customerEntry) {
	switch {
	case e.known:
		remember(m.customers, key, e)
	case e.gone || c.options.DefaultPlan == "":
		remember(m.unknown, key, e)
	default: // a first hit on any node may create the customer without a notification to this node
	}
}

const loadPlan = `
	SELECT (SELECT number FROM change_number), p.id, p.latest_version, coalesce((
		SELECT max(v.version) FROM plan_versions v WHERE v.plan_id = p.id AND v.apply_to = 'all'), 0)
	FROM plans p WHERE p.key = $1`

func (c *Catalog) plan(ctx context.Context, m *memory, key string) (*planEntry, error) {
	known := func() (*planEntry, bool) { return m.plans.Get(key, 0) }
	if e, ok := known(); ok && e.valid() { // the first step of recall, without its allocations
		return e, nil
	}
	keep := func(e *planEntry) { remember(m.plans, key, e) }
	return recall(ctx, c, m, store.KindPlan, key, known, keep, func(ctx context.Context) (*planEntry, error) {
		e, asOf := new(planEntry), int64(0)
		err := c.pool.QueryRow(ctx, loadPlan, key).Scan(&asOf, &e.id, &e.latest, &e.all)
		e.fact = m.fact(store.KindPlan, key, asOf)
		return e, err
	})
}

const loadClock = `SELECT (SELECT number FROM change_number), key, change, now, history FROM test_clocks WHERE key = $1`

func (c *Catalog) clock(ctx context.Context, m *memory, key string) (*clockEntry, error) {
	known := func() (*clockEntry, bool) { return m.clocks.Get(key, 0) }
	keep := func(e *clockEntry) { remember(m.clocks, key, e) }
	return recall(ctx, c, m, store.KindClock, key, known, keep, func(ctx context.Context) (*clockEntry, error) {
		e, asOf := new(clockEntry), int64(0)
		err := c.pool.QueryRow(ctx, loadClock, key).Scan(&asOf, &e.Key, &e.change, &e.Now, &e.history)
		e.fact = m.fact(store.KindClock, key, asOf)
		return e, err
	})
}

const loadMeter = `
	SELECT n.number, m.id IS NOT NULL, coalesce(m.id, 0), coalesce(m.name, ''), coalesce(m.unit, ''), coalesce(m.returns, false)
	FROM change_number n LEFT JOIN meters m ON m.key = $1`

// meter returns the present state of a meter or the error plans.ErrUnknownMeter, which is cached too.
func (c *Catalog) meter(ctx context.Context, key string) (plans.Meter, error) {
	e, err := c.meterEntry(ctx, key)
	if err != nil {
		return plans.Meter{}, err
	}
	return e.meter, nil
}

func (c *Catalog) meterEntry(ctx context.Context, key string) (*meterEntry, error) {
	if !plans.ValidKey(key) {
		return nil, plans.ErrUnknownMeter
	}
	m := c.memory.Load()
	known := func() (*meterEntry, bool) { return m.meters.Get(key, 0) }
	keep := func(e *meterEntry) { remember(m.meters, key, e) }
	e, err := recall(ctx, c, m, store.KindMeter, key, known, keep, func(ctx context.Context) (*meterEntry, error) {
		e, asOf := &meterEntry{meter: plans.Meter{Key: key}}, int64(0)
		err := c.pool.QueryRow(ctx, loadMeter, key).Scan(&asOf, &e.known, &e.meter.ID, &e.meter.Name, &e.meter.Unit, &e.returns)
		e.fact = m.fact(store.KindMeter, key, asOf)
		return e, err
	})
	if err == nil && !e.known {
		return nil, plans.ErrUnknownMeter
	}
	return e, err
}

const loadVersion = `
	SELECT v.change, p.key, v.version, v.created_at, v.document
	FROM plan_versions v JOIN plans p ON p.id = v.plan_id WHERE v.plan_id = $1 AND v.version = $2`

const loadMeterIDs = `SELECT key, id FROM meters WHERE key = ANY ($1)`

// version returns a compiled plan version. A version is immutable, so it needs no fact.
func (c *Catalog) version(ctx context.Context, m *memory, key versionKey) (*version, error) {
	if v, ok := m.versions.Get(key, 0); ok {
		return v, nil
	}
	return fly(ctx, c.options.Within, &m.flights, fmt.Sprint("version ", key), func(ctx context.Context) (*version, error) {
		if v, ok := m.versions.Get(key, 0); ok {
			return v, nil // made by the call before: all callers must share its limits
		}
		p, change, document := new(plans.Plan), int64(0), []byte(nil)
		err := c.pool.QueryRow(ctx, loadVersion, key.plan, key.number).
			Scan(&change, &p.Key, &p.Version, &p.CreatedAt, &document)
		if err != nil {
			return nil, err
		}
		p.CreatedAt = p.CreatedAt.UTC()
		if p.PlanInput, err = plans.ReadDocument(document); err != nil {
			return nil, err
		}
		ids, id, meter := make(map[string]int32), int32(0), ""
		rows, _ := c.pool.Query(ctx, loadMeterIDs, p.MeterKeys())
		if _, err := pgx.ForEachRow(rows, []any{&meter, &id}, func() error { ids[meter] = id; return nil }); err != nil {
			return nil, err
		}
		v, err := compile(p, change, ids)
		if err == nil {
			v.editions, err = c.editions(ctx, m, p)
		}
		if err == nil {
			m.versions.Add(key, v, cache.NoExpiry)
		}
		return v, err
	})
}

// editions returns the token buckets of a plan's versions up to the version p. All versions of a plan
// share the rows that were read.
func (c *Catalog) editions(ctx context.Context, m *memory, p *plans.Plan) ([]plans.Edition, error) {
	known, _ := m.editions.Get(p.Key, 0)
	after := 0
	if last := len(known) - 1; last >= 0 {
		after = known[last].Version
	}
	if after < p.Version {
		more, err := store.Editions(ctx, c.pool, p.Key, after, p.Version, "")
		if err != nil {
			return nil, err
		}
		known = append(slices.Clip(known), more...)
		m.editions.Add(p.Key, known, cache.NoExpiry)
	}
	n := sort.Search(len(known), func(i int) bool { return known[i].Version > p.Version })
	return known[:n:n], nil
}
