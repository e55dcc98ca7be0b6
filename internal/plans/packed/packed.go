// Package packed owns a map of short values in a limited number of bytes. The map has no pointers, so it
// costs the garbage collector nothing. A value may be dropped at any time, so the map is for values that
// can be read again. The package does not interpret the values.
package packed

import (
	"hash/maphash"
	"math"
)

// Map stores short values by short keys, in a limited number of bytes without pointers.
//
// The values are stored in pages. A key's hash selects its page, which is searched from the first item to
// the last. When a page is full, its oldest items are dropped. There is no index, because an index of
// such small items would take as much memory as the items.
type Map struct {
	seed   maphash.Seed
	shares [numShares]pages // shares of the keys, by hash
}

const numShares = 64

// MaxValue is the greatest length of a key and of a value, in bytes.
const MaxValue = math.MaxUint8

// New returns an empty map whose size in bytes is at most the given number. The map may be up to an
// eighth smaller, but has at least one page for each share of the keys.
func New(bytes int) *Map {
	m := &Map{seed: maphash.MakeSeed()}
	for i := range m.shares {
		m.shares[i].init(max(1, bytes/pageSize/numShares))
	}
	return m
}

// of returns the pages of a key's share, and the key's hash within the share.
func (m *Map) of(key string) (share *pages, hash uint64) {
	hash = maphash.String(m.seed, key)
	return &m.shares[hash%numShares], hash / numShares
}

// hash returns a key's hash within its share, as the method of returns it.
func (m *Map) hash(key []byte) uint64 { return maphash.Bytes(m.seed, key) / numShares }

// Get appends a key's value to a buffer.
func (m *Map) Get(b []byte, key string) []byte {
	pages, hash := m.of(key)
	return pages.get(b, hash, key)
}

// Set sets a key's value. Neither the key nor the value may be longer than MaxValue.
func (m *Map) Set(key string, value []byte) {
	pages, hash := m.of(key)
	pages.set(hash, key, value, m.hash)
}

// Remove removes a key and its value.
func (m *Map) Remove(key string) {
	pages, hash := m.of(key)
	pages.remove(hash, key)
}
