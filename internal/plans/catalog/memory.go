package catalog

import (
	"hash/maphash"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"quotad/internal/cache"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

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
	applied   atomic.Int64 // every change up to this number counts
	contacted bool         // this memory began with a poll
	mark      int64        // when the change with the number applied was made, µs; only the poller uses it

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

// fact is the change number at which something was read, and the floor by which it is valid or
// not.
type fact struct {
	asOf  int64 // the newest change when it was read
	floor *atomic.Int64
}

func (f *fact) valid() bool { return f.floor.Load() <= f.asOf }

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
