package catalog

import (
	"hash/maphash"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"quotad/internal/cache"
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

// memory is what a node knows. It is thrown away whole where changes cannot be told one
// by one; nothing but its parts ever changes then, so what an old memory says stays
// right among itself.
//
// The rule that makes it safe: every fact has a floor, the number of the newest change
// that may concern it, and is valid while it was read at that number or later. A change
// first raises the floors, in the order of the numbers, and only then applied. And no
// fact is let in before applied has come up to the number at which it was read. So two
// facts that are valid one after the other were both true at one moment: the change
// number that the floors had reached when the first was looked at.
type memory struct {
	applied   atomic.Int64 // every change up to here counts
	contacted bool         // this memory began with a poll
	mark      int64        // when change applied was made, µs; only the poller uses it

	generation uint64 // it is the how manieth; what another one packed is not of this
	since      int64  // what it packs tells instants from here, µs: those near it take few bytes

	seed   maphash.Seed
	floors [numFloors]atomic.Int64

	customers *cache.Cache[string, *customerEntry]
	packed    *packing                             // customers, too; of all generations
	unknown   *cache.Cache[string, *customerEntry] // that there are no such customers
	plans     *cache.Cache[string, *planEntry]
	versions  *cache.Cache[versionKey, *version] // immutable, always valid
	clocks    *cache.Cache[string, *clockEntry]
	meters    *cache.Cache[string, *meterEntry]
	keys      atomic.Pointer[keyring]
	lateKeys  *cache.Cache[keyHash, *liveKey] // beyond the keyring's, those that were used
	returning atomic.Pointer[meterSet]        // nil: not known, so any; see Returns

	customerKeys *cache.Cache[int64, string] // hints: the key may be another's meanwhile
	meterKeys    *cache.Cache[int32, string] // of meters beside a plan's own; immutable

	flights  singleflight.Group // reads under way, by kind and key
	readings readings           // of customers
}

// numFloors is how many floors there are. Things that share one by their hash forget
// each other's, which costs one more look-up.
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
		clocks:    newCache[string, *clockEntry](maxClocksKept),
		meters:    newCache[string, *meterEntry](maxMetersKept),
		lateKeys:  newCache[keyHash, *liveKey](maxKeys),

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

// fact says when something was read, and how to tell whether it is still so.
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

// remember puts a value in, unless a change has overtaken it on its way or a newer
// reading is there already.
func remember[K comparable, V interface{ read() *fact }](in *cache.Cache[K, V], key K, value V) {
	in.AddIf(key, 0, func(old V, ok bool) (V, int64, bool) {
		keep := value.read().valid() && (!ok || old.read().asOf <= value.read().asOf)
		return value, cache.NoExpiry, keep
	})
}

// apply makes one change count. Only one goroutine at a time calls it.
func (m *memory) apply(c change) {
	if c.kind == store.KindErased {
		// Whom it was about is not told any more; it was a minute ago, so only a node that
		// was away comes here, and doubts everything.
		for i := range m.floors {
			m.floors[i].Store(c.number)
		}
		return
	}
	m.floor(c.kind, c.key).Store(c.number)
	// What is invalid now is not used either way; removing it gives its memory back.
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
