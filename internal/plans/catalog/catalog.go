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

// Freshness is how long a node trusts its last poll of the changes. Within this time a change
// counts on every node.
const Freshness = time.Second

const (
	// defaultCustomers take some 200 MB with two meters each.
	defaultCustomers = 200_000
	defaultPacked    = 32 << 20
	// defaultWithin bounds how long a read waits for the database.
	defaultWithin = 2 * time.Second
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
	// Caps is what the caps of a customer with this id are, from the billing period that runs on: as
	// accounts.Hooks has it. q is the pool, or a transaction. Nil: there are none.
	Caps func(ctx context.Context, q postgres.Querier, customer int64) ([]plans.CapPeriod, error)
	// Within bounds how long a read waits for the database, and a poll half as long. 0 means 2 s.
	Within time.Duration
	// Freshness is for how long Fresh trusts a poll. 0 means a second, as Freshness says.
	Freshness time.Duration
	Log       *slog.Logger // nil: slog.Default
}

// Catalog is a node's memory of who may do what: customers, the plan versions in force for
// them, meters and keys. It answers without a statement what it has read once, until a change
// concerns that. Run makes sure that it hears of changes.
//
// Everything in the memory carries a change number: the newest one in the snapshot that it was
// read by. A change invalidates all that it concerns and that was read before it. So the
// catalog never uses a read that a change overtook. Nor does it use a plan and a customer that
// were not true at one moment (see memory).
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
	wentBack  atomic.Int64
	confirmed atomic.Int64  // Monotonic when the last successful poll began, or never
	wake      chan struct{} // to the poller: somebody says there are changes
	lookups   chan struct{} // bounds the key look-ups under way
	welcomes  chan struct{} // bounds the customers being made
	uses      uses          // of keys
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
	if atLeast > 0 { // which hits have that were stale
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

// Fresh reports whether this node has confirmed within the last second that it has seen
// all changes; FreshWithin, within the last d.
func (c *Catalog) Fresh() bool { return c.FreshWithin(cmp.Or(c.options.Freshness, Freshness)) }

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

// Bounds of what is remembered beside customers. All of it can be read again.
const (
	maxPlansKept    = 10_000
	maxVersionsKept = 10_000
	maxClocksKept   = 10_000
	maxMetersKept   = 20_000 // the keys that are no meters, too
	maxUnknownKept  = 20_000
	maxByIDKept     = 50_000 // keys of customers, and of meters, by their ids
	maxKeys         = 10_000 // all live keys up to here; beyond, those that are used
)

// memory is what a node knows. It is replaced as a whole where the changes since cannot be
// told one by one. An old memory then hears of no more changes, so its parts still agree with
// each other.
//
// One rule makes it safe. Every fact has a floor: the number of the newest change that may
// concern the fact. A fact is valid while it was read at the floor's number or later. A change
// first raises its floors, in the order of the numbers, and only then applied. A fact is
// remembered only after applied has reached the number that it was read at.
//
// So two facts that are found valid one after the other were both true at one moment. That is
// the change number that the floors had reached when the first was checked.
type memory struct {
	applied   atomic.Int64         // every change up to this number counts
	contacted bool                 // this memory began with a poll
	mark      atomic.Pointer[mark] // the change with the number applied, as a poll saw it

	generation uint64 // the number of this memory; packed values of other generations are ignored
	since      int64  // µs; packed instants are distances from here, which take few bytes

	seed   maphash.Seed
	floors [numFloors]atomic.Int64

	customers *cache.Cache[string, *customerEntry]
	packed    *packing                             // more customers, packed; it outlives this memory
	unknown   *cache.Cache[string, *customerEntry] // keys that are no customer's
	plans     *cache.Cache[string, *planEntry]
	versions  *cache.Cache[versionKey, *version]    // immutable, always valid
	editions  *cache.Cache[string, []plans.Edition] // of plans, up to the newest version that was read
	clocks    *cache.Cache[string, *clockEntry]
	meters    *cache.Cache[string, *meterEntry]
	keys      atomic.Pointer[keyring]
	lateKeys  *cache.Cache[keyHash, *liveKey] // keys that were used and are not in the keyring
	endedKeys *cache.Cache[keyHash, struct{}] // keys that were in the keyring and were revoked
	returning atomic.Pointer[meterSet]        // nil: unknown, so every meter counts as one; see Returns

	customerKeys *cache.Cache[int64, string] // hints: the key may be another customer's by now
	meterKeys    *cache.Cache[int32, string] // of meters beside a plan's own; immutable

	flights  singleflight.Group // reads under way, by kind and key
	readings readings           // of customers
}

// numFloors is how many floors there are. Subjects of one hash share a floor: a change of one
// invalidates the others, which costs one more read.
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

// newCache: a size is never below 1 here.
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

// remember stores a value, unless a change has made it invalid, or a newer read of it is
// stored.
func remember[K comparable, V interface{ read() *fact }](in *cache.Cache[K, V], key K, value V) {
	in.AddIf(key, 0, func(old V, ok bool) (V, int64, bool) {
		keep := value.read().valid() && (!ok || old.read().asOf <= value.read().asOf)
		return value, cache.NoExpiry, keep
	})
}

// apply makes one change count. Only one goroutine at a time calls it.
func (m *memory) apply(c change) {
	if c.kind == store.KindErased {
		// The key of an erased customer is gone from this change. Keys are taken out after a
		// minute. So only a node that was away comes here, and it invalidates everything.
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
