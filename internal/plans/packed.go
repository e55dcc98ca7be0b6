package plans

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
	"sync"

	"quotad/internal/calendar"
)

// packed are customers beside those that the memory keeps ready: a few dozen bytes each
// instead of a thousand, and nothing that the garbage collector would have to follow. It costs
// a microsecond to make an entry of them again, and the database twenty to be asked.
// Customers with something of their own, such as an override, are not among them.
//
// What is unpacked is as good as when it was read: it has the same number, and is valid or
// not by the same floor.
//
// They lie in pages, each customer in that of its key's hash, where it is looked for from the
// first to the last; when a page is full, those go that were packed first. So there is no
// index, which takes as much as such small entries do in caches of bytes that have one.
type packed struct {
	seed   maphash.Seed
	shares [packedShares]pages // of the keys, by their hash
	names  names
}

const packedShares = 64

// newPacked returns packed customers in at most this many bytes, or up to an eighth less,
// and at least a page for each share of the keys.
func newPacked(bytes int) *packed {
	p := &packed{seed: maphash.MakeSeed(), names: names{numbers: make(map[string]uint64)}}
	for i := range p.shares {
		p.shares[i].init(max(1, bytes/pageSize/packedShares))
	}
	return p
}

// of returns the pages of a key's share, and its hash among them.
func (p *packed) of(key string) (share *pages, hash uint64) {
	hash = maphash.String(p.seed, key)
	return &p.shares[hash%packedShares], hash / packedShares
}

// hash is the same hash.
func (p *packed) hash(key []byte) uint64 { return maphash.Bytes(p.seed, key) / packedShares }

// get appends a key's value to a buffer.
func (p *packed) get(b []byte, key string) []byte {
	pages, hash := p.of(key)
	return pages.get(b, hash, key)
}

// set sets a key's value.
func (p *packed) set(key string, value []byte) {
	pages, hash := p.of(key)
	pages.set(hash, key, value, p.hash)
}

// remove forgets a key.
func (p *packed) remove(key string) {
	pages, hash := p.of(key)
	pages.remove(hash, key)
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
	kind := uint64(e.pinned) << 1
	if e.anonymous {
		kind |= 1
	}
	var space [128]byte
	b := space[:0]
	for _, n := range [...]uint64{
		m.generation, uint64(e.asOf), uint64(e.id), uint64(e.change), uint64(e.changedAt),
		plan, kind, uint64(e.joined), zone, uint64(e.periods.Anchor.Seconds()),
	} {
		b = binary.AppendUvarint(b, n)
	}
	m.packed.set(key, b)
}

// unpack makes the entry of a packed customer; nil when it is not there, or not of this
// memory's generation.
func (m *memory) unpack(key string) *customerEntry {
	var space [128]byte
	b := m.packed.get(space[:0], key)
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
	e.plan = m.packed.names.name(next())
	kind := next()
	e.pinned, e.anonymous = int(kind>>1), kind&1 != 0
	e.joined = int(next())
	zone, bad := calendar.Location(m.packed.names.name(next()))
	anchor, err := calendar.AnchorOf(int64(next()))
	if bad != nil || err != nil {
		return nil // cannot be: both were read before
	}
	e.periods.Zone, e.periods.Anchor = zone, anchor
	return e
}
