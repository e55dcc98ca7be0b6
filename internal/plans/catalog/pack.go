package catalog

import (
	"encoding/binary"
	"slices"
	"strings"

	"quotad/internal/calendar"
	"quotad/internal/plans/packed"
	"quotad/internal/plans/store"
)

// packing stores customers beyond the capacity of the memory's entries. A packed customer takes a few
// dozen bytes instead of a thousand. Packed customers contain no pointers, so the garbage collector does
// not scan them. Unpacking an entry takes a microsecond, while a query of the database takes twenty.
// Customers with data of their own, such as an override, are not packed.
//
// An unpacked entry carries the change number at which it was read, so its validity depends on the same
// floor as before.
type packing struct {
	customers *packed.Map
	commons   commons
}

// newPacking returns an empty packing whose size in bytes is at most the given number, or up to an eighth
// smaller.
func newPacking(bytes int) *packing {
	return &packing{customers: packed.New(bytes), commons: commons{numbers: make(map[common]uint64)}}
}

// plain reports whether a customer has no data of its own beyond its plan.
func (e *customerEntry) plain() bool {
	return e.known && e.clock == "" && len(e.features) == 0 && len(e.overrides) == 0 && len(e.rates) == 0 &&
		e.suspension == nil && e.ends == nil && e.scheduled == nil && !e.capped &&
		e.periods.Before == nil && len(e.periods.Cuts) <= maxPackedCuts
}

// maxPackedCuts is the most cuts of billing periods that a packed customer may have. It is enough for a
// start, an end and the cuts of a trial.
const maxPackedCuts = 4

// pack stores a plain customer in packed form, with the information that its targets have about their
// counters' rows.
func (m *memory) pack(key string, e *customerEntry) {
	if !e.plain() {
		return
	}
	common, ok := m.packed.commons.number(commonOf(e))
	if !ok {
		return
	}
	var space [packed.MaxValue]byte
	b := space[:0]
	for _, n := range [...]uint64{m.generation, uint64(e.asOf), uint64(e.id), uint64(e.change), common} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, e.periods.Anchor.Seconds()-m.since/1e6)
	b = binary.AppendUvarint(b, uint64(len(e.periods.Cuts)))
	for _, cut := range e.periods.Cuts {
		b = binary.AppendVarint(b, cut-m.since)
	}
	m.packed.customers.Set(key, e.appendRows(b, m.since))
	if !e.valid() { // a change may have removed the key before Set stored it
		m.packed.customers.Remove(key)
	}
}

// unpack returns the entry of a packed customer. The result is nil if the customer is not packed or was
// packed by another memory.
func (m *memory) unpack(key string) *customerEntry {
	var space [packed.MaxValue]byte
	r := packedReader{m.packed.customers.Get(space[:0], key)}
	if len(r.left) == 0 || r.uvarint() != m.generation {
		return nil
	}
	key = strings.Clone(key) // the caller's key may keep a larger string alive
	e := &customerEntry{known: true, fact: m.fact(store.KindCustomer, key, int64(r.uvarint()))}
	e.id, e.change = int64(r.uvarint()), int64(r.uvarint())
	common := m.packed.commons.get(r.uvarint())
	e.plan, e.pinned, e.joined, e.anonymous = common.plan, common.pinned, common.joined, common.anonymous
	zone, bad := calendar.Location(common.zone)
	anchor, err := calendar.AnchorOf(r.varint() + m.since/1e6)
	if bad != nil || err != nil {
		return nil // impossible, because both were valid when they were packed
	}
	e.periods.Zone, e.periods.Anchor = zone, anchor
	if cuts := r.uvarint(); cuts > 0 {
		e.periods.Cuts = make([]int64, cuts)
		for i := range e.periods.Cuts {
			e.periods.Cuts[i] = r.varint() + m.since
		}
	}
	e.rows, e.since = slices.Clone(r.left), m.since
	return e
}

// packedReader reads integers from the beginning of left.
type packedReader struct{ left []byte }

func (r *packedReader) uvarint() uint64 {
	n, size := binary.Uvarint(r.left)
	r.left = r.left[size:]
	return n
}

func (r *packedReader) varint() int64 {
	n, size := binary.Varint(r.left)
	r.left = r.left[size:]
	return n
}
