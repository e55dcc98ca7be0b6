package plans

import (
	"encoding/binary"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/fastcache"

	"quotad/internal/calendar"
)

// packed are customers beside those that the memory keeps ready: some 70 bytes each instead
// of a thousand, and nothing that the garbage collector would have to follow. It costs a
// microsecond to make an entry of them again, and the database twenty to be asked. The
// oldest readings go first. Customers with something of their own, such as an override, are
// not among them.
//
// What is unpacked is as good as when it was read: it has the same number, and is valid or
// not by the same floor.
type packed struct {
	cache *fastcache.Cache
	names names
}

// newPacked returns packed customers in at most this many bytes, besides about half of it
// for their index; at least 32 MiB, which it takes when it needs them.
func newPacked(bytes int) *packed {
	return &packed{cache: fastcache.New(bytes), names: names{numbers: make(map[string]uint64)}}
}

// size is what they take without their index, bytes.
func (p *packed) size() int64 {
	var s fastcache.Stats
	p.cache.UpdateStats(&s)
	return int64(s.BytesSize)
}

// maxNames bounds the plans and timezones that packed customers share.
const maxNames = maxPlansKept + 1024

// names gives numbers to names that many customers have.
type names struct {
	mu      sync.RWMutex
	numbers map[string]uint64
	all     []string
}

// number is a name's; ok is false when there are too many.
func (n *names) number(name string) (number uint64, ok bool) {
	n.mu.RLock()
	number, ok = n.numbers[name]
	n.mu.RUnlock()
	if ok {
		return number, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if number, ok = n.numbers[name]; !ok && len(n.all) < maxNames {
		number, ok = uint64(len(n.all)), true
		n.numbers[name], n.all = number, append(n.all, name)
	}
	return number, ok
}

func (n *names) name(number uint64) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.all[number]
}

// plain reports whether a customer has nothing that others on its plan do not have.
func (e *customerEntry) plain() bool {
	return e.known && e.clock == "" && len(e.features) == 0 && len(e.overrides) == 0 && e.periods.Before == nil
}

// pack remembers a plain customer.
func (m *memory) pack(key string, e *customerEntry) {
	if !e.plain() {
		return
	}
	plan, ok := m.packed.names.number(e.plan)
	zone, more := m.packed.names.number(e.periods.Zone.String())
	if !ok || !more {
		return
	}
	anonymous := uint64(0)
	if e.anonymous {
		anonymous = 1
	}
	var space [128]byte
	b := space[:0]
	for _, n := range [...]uint64{
		m.generation, uint64(e.asOf), uint64(e.id), uint64(e.change), uint64(e.changedAt),
		plan, uint64(e.pinned), uint64(e.joined), zone, uint64(e.periods.Anchor.Seconds()), anonymous,
	} {
		b = binary.AppendUvarint(b, n)
	}
	var name [maxKey]byte
	m.packed.cache.Set(append(name[:0], key...), b)
}

// unpack makes the entry of a packed customer; nil when it is not there, or not of this
// memory's generation.
func (m *memory) unpack(key string) *customerEntry {
	var name [maxKey]byte
	var space [128]byte
	b := m.packed.cache.Get(space[:0], append(name[:0], key...))
	if len(b) == 0 {
		return nil
	}
	next := func() uint64 {
		n, size := binary.Uvarint(b)
		b = b[size:]
		return n
	}
	if next() != m.generation {
		return nil
	}
	key = strings.Clone(key) // the caller's may be a piece of something larger
	e := &customerEntry{known: true, fact: m.fact(kindCustomer, key, int64(next()))}
	e.id, e.change, e.changedAt = int64(next()), int64(next()), int64(next())
	e.plan, e.pinned, e.joined = m.packed.names.name(next()), int(next()), int(next())
	zone, bad := calendar.Location(m.packed.names.name(next()))
	anchor, err := calendar.AnchorOf(int64(next()))
	if bad != nil || err != nil {
		return nil // cannot be: both were read before
	}
	e.periods.Zone, e.periods.Anchor = zone, anchor
	e.anonymous = next() == 1
	return e
}
