package catalog

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/singleflight"

	"quotad/internal/cache"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/model"
)

// Freshness is the time for which a node trusts its last poll of the changes. A change takes effect on
// every node within this time.
const Freshness = time.Second

const (
	// defaultCustomers is the default of Options.Customers, which takes some 200 MB with two meters each.
	defaultCustomers = 200_000
	defaultPacked    = 32 << 20
	// defaultWithin is the default time for which a read waits for the database.
	defaultWithin = 2 * time.Second
	// maxAttempts is the number of times that a read is started when changes overtake it.
	maxAttempts = 8
	// never is the value of Catalog.confirmed before the first poll.
	never = math.MinInt64
)

// Options configures a Catalog.
type Options struct {
	// Customers limits the number of customers in memory. 0 means 200,000.
	Customers int
	// PackedBytes limits the memory for further customers, see packing. 0 means 32 MiB.
	PackedBytes int
	// Monotonic returns the time since a fixed instant and never steps. Monotonic is required.
	Monotonic func() time.Duration
	// Now returns the best known time of the database, in µs since the Unix epoch. Now is called for keys
	// with an expiry and for new customers. Now is required.
	Now func(ctx context.Context) (int64, error)
	// DefaultPlan is the key of the plan on which a first hit creates a customer. All nodes must have the
	// same default plan. If DefaultPlan is empty, only PutCustomer creates customers.
	DefaultPlan string
	// Caps returns the caps of the customer with this id, from the running billing period on, as
	// accounts.Hooks computes them. q is the pool or a transaction. If Caps is nil, there are no caps.
	Caps func(ctx context.Context, q postgres.Querier, customer int64) ([]plans.CapPeriod, error)
	// Within limits the time that a read waits for the database. A poll may wait half as long. 0 means 2 s.
	Within time.Duration
	// Freshness is the time for which Fresh trusts a poll. 0 means a second, see the constant Freshness.
	Freshness time.Duration
	Log       *slog.Logger // nil means slog.Default
}

// Catalog is a node's cache of customers, the plan versions in force for them, meters and keys. Once the
// catalog has read a value, it returns the value without a statement until a change concerns it. Run
// keeps the catalog informed of changes.
//
// Every cached value carries the newest change number in the snapshot from which it was read. A change
// invalidates all values that it concerns and that were read before it. The catalog therefore never uses
// a value that a change overtook, and never combines a plan and a customer that were not true at one
// moment (see memory).
//
// In an outage of the database, the catalog still returns cached values. Fresh reports whether they may
// be outdated. A Catalog is safe for concurrent use.
type Catalog struct {
	pool      *pgxpool.Pool
	options   Options
	polls     singleflight.Group
	poller    poller
	memory    atomic.Pointer[memory]
	trouble   atomic.Pointer[error] // error of the last poll; nil if it succeeded
	wentBack  atomic.Int64
	confirmed atomic.Int64  // Monotonic at the start of the last successful poll, or never
	wake      chan struct{} // wakes the poller when there may be changes
	lookups   chan struct{} // limits the key look-ups in progress
	welcomes  chan struct{} // limits the customers that are being created
	uses      uses          // uses of keys
}

// New returns an empty catalog on a pool. Run keeps the catalog current.
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
	if o.Within <= 0 {
		o.Within = defaultWithin
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

// Committed applies a change of this node's store. The store calls it with the change number after each
// write, so that the write takes effect here before it returns, if the database can be queried.
func (c *Catalog) Committed(ctx context.Context, number int64) {
	if err := c.CatchUp(ctx, number); err != nil {
		c.signal() // the poller will apply the change
	}
}

// Resolve returns the target that contains the limits for a customer's hits on a meter. The target is
// current as of change atLeast or later, and 0 means any change that this node has seen. From memory,
// Resolve makes no allocation and takes no contended lock. If a value is missing or atLeast is newer than
// the memory, Resolve queries the database, within a few seconds. Concurrent callers share that read.
//
// With a default plan, Resolve creates a customer that does not exist, see welcome. Resolve is therefore
// for hits only.
//
// The error is plans.ErrUnknownCustomer for an unknown or archived customer, and a
// *plans.NoDefaultPlanError if the default plan is missing. Other errors are session.ErrBusy if too many
// customers are being created, plans.ErrNotInPlan, plans.ErrUnknownMeter, and session.ErrUnavailable if
// the database could not be queried.
func (c *Catalog) Resolve(ctx context.Context, customer, meter string, atLeast int64) (*model.Target, error) {
	m := c.memory.Load()
	if atLeast > 0 { // set by hits whose limits were stale
		if err := c.reach(ctx, atLeast); err != nil {
			return nil, err
		}
		return c.resolve(ctx, customer, meter)
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

// resolve is the slow path of Resolve.
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

// makes reports whether err means that the customer is missing and that its first hit may create it.
func (c *Catalog) makes(err error) bool {
	return c.options.DefaultPlan != "" && errors.Is(err, plans.ErrUnknownCustomer) && !errors.Is(err, errGone)
}

// Fresh reports whether this node has confirmed within the last second that it has seen all changes.
// FreshWithin checks another duration.
func (c *Catalog) Fresh() bool { return c.FreshWithin(cmp.Or(c.options.Freshness, Freshness)) }

// FreshWithin is Fresh with the duration d instead of a second.
func (c *Catalog) FreshWithin(d time.Duration) bool {
	age, contacted := c.Age()
	return contacted && age <= d
}

// Trouble returns the error of the last poll if that error is session.ErrUnavailable or
// session.ErrNoSession, and nil otherwise. A poll runs four times a second.
func (c *Catalog) Trouble() error {
	if why := c.trouble.Load(); why != nil {
		return *why
	}
	return nil
}

// Age returns the time since this node last confirmed that it has seen all changes. contacted is false if
// the node has never confirmed this.
func (c *Catalog) Age() (age time.Duration, contacted bool) {
	confirmed := c.confirmed.Load()
	if confirmed == never {
		return 0, false
	}
	return c.options.Monotonic() - time.Duration(confirmed), true
}

// Evicted returns the number of customers that were evicted to make room for other customers.
func (c *Catalog) Evicted() uint64 { return c.memory.Load().customers.Evictions() }

// Applied returns the number of the newest change that this node has applied.
func (c *Catalog) Applied() int64 { return c.memory.Load().applied.Load() }

// The limits on cached values other than customers. All of these values can be read again.
const (
	maxPlansKept    = 10_000
	maxVersionsKept = 10_000
	maxClocksKept   = 10_000
	maxMetersKept   = 20_000 // also keys that belong to no meter
	maxUnknownKept  = 20_000
	maxByIDKept     = 50_000 // keys of customers and of meters, by id
	maxKeys         = 10_000 // live keys in the keyring; further keys are cached when used
)

// memory is the state that a node caches. If the changes since the last poll cannot be applied one by
// one, the memory is replaced as a whole. The old memory then receives no more changes, so its parts
// still agree with each other.
//
// One rule makes the cache safe. Every fact has a floor, which is the number of the newest change that
// may concern the fact. A fact is valid if it was read at the floor's number or later. A change first
// raises its floors, in the order of the numbers, and only then raises applied. A fact is cached only
// after applied has reached the number at which the fact was read.
//
// It follows that two facts that are found valid one after the other were both true at one moment. That
// moment is the change number that the floors had reached when the first fact was checked.
type memory struct {
	applied   atomic.Int64         // every change up to this number is applied
	contacted bool                 // this memory began with a poll
	mark      atomic.Pointer[mark] // the change numbered applied, as a poll read it

	generation uint64 // number of this memory; packed values of other generations are ignored
	since      int64  // µs; packed instants are differences to it, which take few bytes

	seed   maphash.Seed
	floors [numFloors]atomic.Int64

	customers *cache.Cache[string, *customerEntry]
	packed    *packing                             // further customers in packed form; outlives this memory
	unknown   *cache.Cache[string, *customerEntry] // keys that belong to no customer
	plans     *cache.Cache[string, *planEntry]
	versions  *cache.Cache[versionKey, *version]    // immutable, so always valid
	editions  *cache.Cache[string, []plans.Edition] // versions of plans, up to the newest version that was read
	clocks    *cache.Cache[string, *clockEntry]
	meters    *cache.Cache[string, *meterEntry]
	keys      atomic.Pointer[keyring]
	lateKeys  *cache.Cache[keyHash, *liveKey] // keys that were used and are not in the keyring
	endedKeys *cache.Cache[keyHash, struct{}] // keys that were in the keyring and were revoked
	returning atomic.Pointer[meterSet]        // nil if unknown, so that every meter counts as returning; see Returns

	customerKeys *cache.Cache[int64, string] // hints, because a key may belong to another customer by now
	meterKeys    *cache.Cache[int32, string] // keys of meters that are not in a plan; immutable

	flights  singleflight.Group // reads in progress, by kind and key
	readings readings           // reads of customers
}

// numFloors is the number of floors. Subjects with the same hash share a floor, so a change of one
// subject also invalidates the other subjects, at the cost of another read.
const numFloors = 4096

type subject struct{ kind, key string }

func newMemory(generation uint64, customers int, packed *packing) *memory {
	m := &memory{
		generation: generation,
		packed:     packed,

		seed:      maphash.MakeSeed(),
		customers: newCache[string, *customerEntry](customers),
		unknown:   newCache[string, *customerEntry](min(customers, maxUnknownKept)),
		plans:     newCache[string, *planEntry](maxPlansKept),
		versions:  newCache[versionKey, *version](maxVersionsKept),
		editions:  newCache[string, []plans.Edition](maxPlansKept),
		clocks:    newCache[string, *clockEntry](maxClocksKept),
		meters:    newCache[string, *meterEntry](maxMetersKept),
		lateKeys:  newCache[keyHash, *liveKey](maxKeys),
		endedKeys: newCache[keyHash, struct{}](maxEndedKept),

		customerKeys: newCache[int64, string](min(customers, maxByIDKept)),
		meterKeys:    newCache[int32, string](min(customers, maxByIDKept)),
	}
	m.mark.Store(new(mark))
	m.customers.OnEvict(m.pack)
	return m
}

// newCache returns a cache of the given size, which is never below 1 here.
func newCache[K comparable, V any](size int) *cache.Cache[K, V] {
	c, err := cache.New[K, V](size)
	if err != nil {
		panic(err)
	}
	return c
}

func (m *memory) fact(kind, key string, asOf int64) fact {
	return fact{asOf, m.floor(kind, key)}
}

func (m *memory) floor(kind, key string) *atomic.Int64 {
	return &m.floors[maphash.Comparable(m.seed, subject{kind, key})%numFloors]
}

// remember stores a value, unless a change has invalidated the value or a newer read of it is stored.
func remember[K comparable, V interface{ read() *fact }](in *cache.Cache[K, V], key K, value V) {
	in.AddIf(key, 0, func(old V, ok bool) (V, int64, bool) {
		keep := value.read().valid() && (!ok || old.read().asOf <= value.read().asOf)
		return value, cache.NoExpiry, keep
	})
}

// apply applies one change. Only one goroutine at a time may call it.
func (m *memory) apply(c change) {
	if c.kind == store.KindErased {
		// This change no longer contains the key of the erased customer. Keys are removed after a minute, so
		// only a node that was away reads such a change, and it invalidates everything.
		for i := range m.floors {
			m.floors[i].Store(c.number)
		}
		return
	}
	m.floor(c.kind, c.key).Store(c.number)
	// These entries are invalid now and would not be used. Removing them frees their memory.
	switch c.kind {
	case store.KindCustomer:
		m.customers.Remove(c.key)
		m.unknown.Remove(c.key)
		m.packed.customers.Remove(c.key)
	case store.KindPlan:
		m.plans.Remove(c.key)
	case store.KindClock:
		m.clocks.Remove(c.key)
	case store.KindMeter:
		m.meters.Remove(c.key)
	}
}
