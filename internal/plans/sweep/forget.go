package sweep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
	"quotad/internal/quota/upkeep"
)

// The shortest and the longest TTL of a Forgetter.
const (
	MinAnonymousTTL = time.Minute
	MaxAnonymousTTL = 365 * 24 * time.Hour
)

const (
	// maxForgotten is the number of customers that one transaction checks and forgets. The transaction holds
	// the change number's lock for some 20 ms.
	maxForgotten = 500
	// clearEvery is the interval between searches for counters of forgotten customers. clearAfter is the
	// time for which these counters are left alone, because a node that has not learned of the change yet
	// may charge them for a second.
	clearEvery = 20 * time.Second
	clearAfter = time.Minute
	// minWalk and maxWalk are the bounds of the interval between two walks over all anonymous customers. A
	// walk runs 20 times in a TTL, so that idle customers are forgotten soon after their time.
	minWalk = 2 * time.Second
	maxWalk = time.Hour
	// walkPause is the pause between two pages of a walk, which leaves the database to other work.
	walkPause = 20 * time.Millisecond
)

// Forgetter removes anonymous customers that have not been charged for a TTL, in two steps. First it
// deletes the customer's row by a change of which all nodes learn. From then on the key is free, and its
// next hit creates another customer. Later, when no node can charge the customer's counters any more, the
// Forgetter deletes these counters. Their units are kept as usage.
//
// Only admitted hits charge a customer. Refusals, dry runs and reads do not keep a customer alive, so the
// TTL should be longer than the longest window of the default plan. Otherwise a customer that waits for
// the TTL has a new quota.
//
// Some customers are never forgotten: archived customers, customers with overrides, and customers with
// units of an allocation limit or an open reservation. Such units do not replenish with time.
//
// All nodes may run a Forgetter on the same database.
type Forgetter struct {
	store   *store.Store
	targets func(context.Context, []model.CounterKey) ([]*model.Target, error)
	ttl     time.Duration
	every   time.Duration // pause between two walks
	grace   time.Duration // clearAfter, except in tests
	log     *slog.Logger
}

// NewForgetter returns a Forgetter. targets is catalog.Catalog.Targets, ttl is from MinAnonymousTTL to
// MaxAnonymousTTL, and a nil log means slog.Default. A node whose catalog belongs to the given store
// learns at once of forgotten customers.
func NewForgetter(store *store.Store, targets func(context.Context, []model.CounterKey) ([]*model.Target, error), ttl time.Duration,
	log *slog.Logger,
) *Forgetter {
	if log == nil {
		log = slog.Default()
	}
	return &Forgetter{
		store: store, targets: targets,
		ttl: ttl, every: min(max(ttl/20, minWalk), maxWalk), grace: clearAfter, log: log,
	}
}

// Run forgets idle customers until ctx ends. A failed run is retried at the next interval.
func (f *Forgetter) Run(ctx context.Context) {
	first := rand.N(min(f.every, minWalk)) //nolint:gosec // not all nodes at one time, and not a secret
	walks := upkeep.Repeated{
		Log: f.log, First: first, Pause: f.every, Do: f.walk,
		Fails: "idle anonymous customers cannot be forgotten now; it is tried again",
		Works: "idle anonymous customers are forgotten again",
	}
	clears := upkeep.Repeated{
		Log: f.log, First: first, Pause: min(f.every, clearEvery), Do: f.clearAll,
		Fails: "counters of forgotten customers cannot be removed now; it is tried again",
		Works: "counters of forgotten customers are removed again",
	}
	var both sync.WaitGroup
	both.Go(func() { walks.Run(ctx) })
	both.Go(func() { clears.Run(ctx) })
	both.Wait()
}

const anonymousCustomers = `
	SELECT id FROM customers
	WHERE anonymous AND archived_at IS NULL AND suspended_at IS NULL AND id > $1 AND id <= $2
	  AND created_at < $3
	ORDER BY id`

// anonymousPage finds the end of a page. A page is a range of ids that ends at the 500th anonymous
// customer, idle or not, so that each statement is short.
const anonymousPage = `
	SELECT coalesce(max(id), 0) FROM (
		SELECT id FROM customers WHERE anonymous AND id > $1 ORDER BY id LIMIT $2) p`

// page is the range up to the id End, with the time of the read. End is 0 if no customer is left.
type page struct {
	End int64
	Now time.Time
}

func (f *Forgetter) page(ctx context.Context, after int64) (p page, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.store.Within())
	defer cancel()
	if p.Now, err = f.store.Now(ctx); err != nil {
		return p, err
	}
	err = f.store.Pool().QueryRow(ctx, anonymousPage, after, maxForgotten).Scan(&p.End)
	return p, store.Classify(err)
}

// walk checks all anonymous customers and forgets the idle customers among them.
func (f *Forgetter) walk(ctx context.Context) error {
	for after := int64(0); ; {
		p, err := f.page(ctx, after)
		if err != nil || p.End == 0 {
			return err
		}
		idle, err := f.idle(ctx, after, p.End, p.Now.Add(-f.ttl))
		if err != nil {
			return err
		}
		if err := f.forget(ctx, idle); err != nil {
			return err
		}
		after = p.End
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(walkPause):
		}
	}
}

// idle returns the anonymous customers in a range of ids that are old enough, have no counter charged
// since, and have no units in use.
func (f *Forgetter) idle(ctx context.Context, after, end int64, since time.Time) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, f.store.Within())
	defer cancel()
	rows, _ := f.store.Pool().Query(ctx, anonymousCustomers, after, end, since)
	old, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(old) == 0 {
		return nil, store.Classify(err)
	}
	var idle []int64
	var inUse map[int64]bool
	err = pgx.BeginFunc(ctx, f.store.Pool(), func(tx pgx.Tx) (err error) {
		if idle, err = upkeep.IdleSince(ctx, tx, old, since.UnixMicro()); err == nil && len(idle) > 0 {
			inUse, err = upkeep.InUse(ctx, tx, idle, f.targets)
		}
		return err
	})
	return slices.DeleteFunc(idle, func(customer int64) bool { return inUse[customer] }), store.Classify(err)
}

const forgetCustomers = `
	WITH gone AS (
		DELETE FROM customers c WHERE id = ANY ($1) AND anonymous AND archived_at IS NULL AND suspended_at IS NULL
		  AND NOT EXISTS (SELECT FROM overrides o WHERE o.customer_id = c.id)
		RETURNING id, key
	), queued AS (
		INSERT INTO forgotten (customer, at) SELECT id, $2 FROM gone)
	SELECT key FROM gone`

// forget performs the first step for customers that were idle a moment ago. Under the change number's
// lock nobody else writes a customer, but counters may be charged. forget therefore checks again which
// customers are idle. The second step books units that are charged after that.
func (f *Forgetter) forget(ctx context.Context, idle []int64) error {
	if len(idle) == 0 {
		return nil
	}
	count := 0
	err := f.store.Write(ctx, store.KindCustomer, "", func(ctx context.Context, w *store.Writing) error {
		still, err := upkeep.IdleSince(ctx, w, idle, w.Now.Add(-f.ttl).UnixMicro())
		if err != nil {
			return err
		}
		rows, _ := w.Query(ctx, forgetCustomers, still, w.Now)
		keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if count = len(keys); count == 0 {
			return store.Unchanged()
		}
		return w.Changed(ctx, keys)
	})
	if err == nil && count > 0 {
		f.log.Info("forgot idle anonymous customers", "customers", count)
	}
	return err
}
