package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
)

// Freshness is how long a confirmation that nothing has changed is believed: within it
// a change counts on every node.
const Freshness = time.Second

const (
	// defaultCustomers take some 200 MB with two meters each.
	defaultCustomers = 200_000
	defaultPacked    = 32 << 20
	// loadTimeout bounds what a miss waits for the database.
	loadTimeout = 2 * time.Second
	// maxAttempts bounds how often a load is begun anew because a change overtook it.
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
	// DefaultPlan is the key of the plan on which a customer is made at its first hit, the
	// same on all nodes; empty: customers are made by PutCustomer only.
	DefaultPlan string
	Log         *slog.Logger // nil: slog.Default
}

// Catalog is a node's memory of who may do what: customers, the plan versions in force
// for them, meters and keys. What it once read it answers without a statement, until a
// change concerns it; Run makes sure that it hears of changes.
//
// Everything in the memory carries the change number that was the newest when it was
// read, by the same snapshot. A change makes all that was read before it, and that it
// concerns, invalid; so neither an answer of the database that was overtaken on its way
// here, nor a plan and a customer read at different times, can be taken for the present
// (see memory.go).
//
// In an outage of the database the memory goes on answering; Fresh says that it may be
// behind. It is safe for concurrent use.
type Catalog struct {
	store     *store.Store
	options   Options
	polls     singleflight.Group
	poller    poller
	memory    atomic.Pointer[memory]
	trouble   atomic.Pointer[error] // why the last poll failed; nil: it did not
	confirmed atomic.Int64          // Monotonic when the last successful poll began, or never
	wake      chan struct{}         // to the poller: somebody says there are changes
	lookups   chan struct{}         // bounds the key look-ups under way
	welcomes  chan struct{}         // bounds the customers being made
}

// New returns an empty catalog on a store; Run keeps it current. What is written
// through this very store counts here before the write returns, database permitting.
func New(store *store.Store, o Options) *Catalog {
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
	c := &Catalog{store: store, options: o, wake: make(chan struct{}, 1), lookups: make(chan struct{}, maxLookups)}
	c.poller.pool = store.Pool()
	c.welcomes = make(chan struct{}, maxWelcomes)
	c.memory.Store(newMemory(1, o.Customers, newPacking(o.PackedBytes)))
	c.confirmed.Store(never)
	store.OnCommit(func(ctx context.Context, number int64) {
		if err := c.CatchUp(ctx, number); err != nil {
			c.signal() // the poller will do it
		}
	})
	return c
}

// Resolve returns what hits of a customer on a meter are judged by, as of change atLeast
// or later (0: as of any that this node has seen). From memory it takes no allocation
// and no lock that others wait at; on a miss, or when atLeast is news, it asks the
// database, within a few seconds, together with all others that ask then.
//
// With a default plan it makes the customer that it does not find, see welcome; so it is
// for hits only.
//
// Errors: plans.ErrUnknownCustomer, also for an archived customer; a *plans.NoDefaultPlanError
// where a default plan is set and does not exist; session.ErrBusy when too many customers are
// being made; plans.ErrNotInPlan; plans.ErrUnknownMeter; session.ErrUnavailable when the catalog
// had to ask the database and could not.
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

// makes reports whether the customer who is missing by this error is made by its first hit.
func (c *Catalog) makes(err error) bool {
	return c.options.DefaultPlan != "" && errors.Is(err, plans.ErrUnknownCustomer) && !errors.Is(err, errGone)
}

// MeterTarget is one meter of a customer's plan. Price is nil where the plan has none.
type MeterTarget struct {
	Meter  plans.Meter
	Target *model.Target
	Price  *plans.Price
}

// Account is what a customer has at one moment. But for the list of meters all of it is
// shared: it must not be changed.
type Account struct {
	// Plan is the version in force, with the customer's own features over its own, and
	// Meters are all of its meters, in its order: its meters, then those that only limits,
	// then those that only prices name.
	Plan      *plans.Plan
	Meters    []MeterTarget
	Clock     *model.TestClock // nil: it lives in PostgreSQL's time
	Anonymous bool
}

// Meters returns what a customer has, and with a default plan what one would have that is
// not there yet: it makes nobody. Errors are plans.ErrUnknownCustomer (also an archived one) and
// session.ErrUnavailable when it had to ask and could not.
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

// Trouble is session.ErrUnavailable or session.ErrNoSession when that kept this node from asking
// the database for changes the last time, which it does four times a second; else nil.
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
