package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Freshness is how long a node trusts its last poll of the changes. Within this time a change
// counts on every node.
const Freshness = time.Second

const (
	// defaultCustomers take some 200 MB with two meters each.
	defaultCustomers = 200_000
	defaultPacked    = 32 << 20
	// loadTimeout bounds how long a read waits for the database.
	loadTimeout = 2 * time.Second
	// maxAttempts bounds how often a read is begun again because a change came during it.
	maxAttempts = 8
	// never is Catalog.confirmed before the first poll.
	never = math.MinInt64
)

// Options configure a Catalog.
type Options struct {
	// Customers bounds the customers in memory; 0 means 200,000.
	Customers int
	// PackedBytes bounds the memory of the customers beyond those, see packing; 0 means 32 MiB.
	PackedBytes int
	// Monotonic is the time since some fixed instant; it never steps. Required.
	Monotonic func() time.Duration
	// Now is the database's time in µs since the Unix epoch, as well as it is known. It
	// is asked for keys with an expiry, and for customers that are made. Required.
	Now func(ctx context.Context) (int64, error)
	// DefaultPlan is the key of the plan on which a first hit makes a customer. It is the same
	// on all nodes. When it is empty only PutCustomer makes customers.
	DefaultPlan string
	Log         *slog.Logger // nil: slog.Default
}

// Catalog is a node's memory of who may do what: customers, the plan versions in force for
// them, meters and keys. It answers without a statement what it has read once, until a change
// concerns that. Run makes sure that it hears of changes.
//
// Everything in the memory carries a change number: the newest one in the snapshot that it was
// read by. A change invalidates all that it concerns and that was read before it. So the
// catalog never uses a read that a change overtook. Nor does it use a plan and a customer that
// were not true at one moment (see memory.go).
//
// In an outage of the database the memory goes on answering. Fresh says whether it may be
// behind. It is safe for concurrent use.
type Catalog struct {
	pool      *pgxpool.Pool
	options   Options
	polls     singleflight.Group
	poller    poller
	memory    atomic.Pointer[memory]
	trouble   atomic.Pointer[error] // why the last poll failed; nil: it did not
	confirmed atomic.Int64          // Monotonic when the last successful poll began, or never
	wake      chan struct{}         // to the poller: somebody says there are changes
	lookups   chan struct{}         // bounds the key look-ups under way
	welcomes  chan struct{}         // bounds the customers being made
	uses      uses                  // of keys
}

// New returns an empty catalog on a pool. Run keeps it current.
func New(pool *pgxpool.Pool, o Options) *Catalog {
	if o.Monotonic == nil || o.Now == nil {
		panic("plans: a catalog needs its clocks")
	}
	if o.Customers <= 0 {
		o.Customers = defaultCustomers
	}
	if o.PackedBytes <= 0 {
		o.PackedBytes = defaultPacked
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	c := &Catalog{pool: pool, options: o, wake: make(chan struct{}, 1), lookups: make(chan struct{}, maxLookups)}
	c.poller.pool = pool
	c.welcomes = make(chan struct{}, maxWelcomes)
	c.memory.Store(newMemory(1, o.Customers, newPacking(o.PackedBytes)))
	c.confirmed.Store(never)
	return c
}

// Committed is what the store of this node calls after each write, with its change number. So the
// write counts here before it returns, if the database can be asked.
func (c *Catalog) Committed(ctx context.Context, number int64) {
	if err := c.CatchUp(ctx, number); err != nil {
		c.signal() // the poller will do it
	}
}

// Resolve returns the target that hits of a customer on a meter are judged by. It is as of
// change atLeast or later; 0 means any change that this node has seen. From memory it takes no
// allocation and no contended lock. Where the memory lacks something, or atLeast is newer, it
// asks the database, within a few seconds. Concurrent callers share that read.
//
// With a default plan it makes a customer that does not exist, see welcome. So it is for hits
// only.
//
// Errors: plans.ErrUnknownCustomer (also for an archived one; a *plans.NoDefaultPlanError when
// the default plan is missing), session.ErrBusy when too many customers are being made,
// plans.ErrNotInPlan, plans.ErrUnknownMeter, and session.ErrUnavailable when the database
// could not be asked.
func (c *Catalog) Resolve(ctx context.Context, customer, meter string, atLeast int64) (*model.Target, error) {
	m := c.memory.Load()
	if atLeast > m.applied.Load() {
		if err := c.CatchUp(ctx, atLeast); err != nil {
			return nil, err
		}
		m = c.memory.Load()
	}
	if entry, ok := m.customers.Get(customer, 0); ok {
		if r := entry.current(); r != nil {
			if inPlan := r.version.meters[meter]; inPlan != nil {
				return r.target(inPlan), nil
			}
		}
	}
	return c.resolve(ctx, customer, meter)
}

// resolve is Resolve's slow path.
func (c *Catalog) resolve(ctx context.Context, customer, meter string) (*model.Target, error) {
	r, err := c.terms(ctx, customer)
	if c.makes(err) {
		r, err = c.welcome(ctx, customer, meter)
	}
	if err != nil {
		return nil, err
	}
	if inPlan := r.version.meters[meter]; inPlan != nil {
		return r.target(inPlan), nil
	}
	if _, err := c.meter(ctx, meter); err != nil {
		return nil, err
	}
	return nil, plans.ErrNotInPlan
}

// makes reports whether err says that the customer is missing and its first hit may make it.
func (c *Catalog) makes(err error) bool {
	return c.options.DefaultPlan != "" && errors.Is(err, plans.ErrUnknownCustomer) && !errors.Is(err, errGone)
}

// MeterTarget is one meter of a customer's plan. Price is nil where the plan has none.
type MeterTarget struct {
	Meter  plans.Meter
	Target *model.Target
	Price  *plans.Price
}

// Account is what a customer has at one moment. All of it but the slice Meters is shared, and
// must not be changed.
type Account struct {
	// Plan is the version in force, with the customer's features merged over the plan's.
	// Meters are all meters of the plan: those of its list, then those that only limits name,
	// then those that only prices name.
	Plan      *plans.Plan
	Meters    []MeterTarget
	Clock     *model.TestClock // nil: it lives in PostgreSQL's time
	Anonymous bool
}

// Meters returns what a customer has. With a default plan it also returns what an unknown
// customer would have, and makes none. Errors: plans.ErrUnknownCustomer (also for an archived
// one), and session.ErrUnavailable when the database could not be asked.
func (c *Catalog) Meters(ctx context.Context, customer string) (*Account, error) {
	r, err := c.terms(ctx, customer)
	if c.makes(err) {
		r, err = c.prospect(ctx, customer)
	}
	if err != nil {
		return nil, err
	}
	all := make([]MeterTarget, len(r.version.order))
	for i, inPlan := range r.version.order {
		meter, err := c.meter(ctx, inPlan.key)
		if err != nil {
			return nil, fmt.Errorf("meter %s of plan %s: %w", inPlan.key, r.version.plan.Key, err)
		}
		all[i] = MeterTarget{Meter: meter, Target: r.target(inPlan), Price: inPlan.price}
	}
	return &Account{Plan: r.shown, Meters: all, Clock: r.testClock(), Anonymous: r.entry.anonymous}, nil
}

// Fresh reports whether this node has confirmed within the last second that it has seen
// all changes; FreshWithin, within the last d.
func (c *Catalog) Fresh() bool { return c.FreshWithin(Freshness) }

// FreshWithin is Fresh for another time than a second.
func (c *Catalog) FreshWithin(d time.Duration) bool {
	age, contacted := c.Age()
	return contacted && age <= d
}

// Trouble is the error of the last poll, which runs four times a second, if that error is
// session.ErrUnavailable or session.ErrNoSession. Otherwise it is nil.
func (c *Catalog) Trouble() error {
	if why := c.trouble.Load(); why != nil {
		return *why
	}
	return nil
}

// Age is the time since this node last confirmed that it has seen all changes; contacted
// is false while it never has.
func (c *Catalog) Age() (age time.Duration, contacted bool) {
	confirmed := c.confirmed.Load()
	if confirmed == never {
		return 0, false
	}
	return c.options.Monotonic() - time.Duration(confirmed), true
}

// Evicted counts the customers that were forgotten to make room for others.
func (c *Catalog) Evicted() uint64 { return c.memory.Load().customers.Evictions() }

// Applied is the newest change that counts on this node.
func (c *Catalog) Applied() int64 { return c.memory.Load().applied.Load() }
