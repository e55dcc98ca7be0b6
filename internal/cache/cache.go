// Package cache owns a bounded, sharded, expiring LRU, for values that many goroutines read
// and few write.
//
// It must never know of quotas, read a clock, start a goroutine, or do I/O. The time is an
// argument (now), and an expiry is kept with its value.
//
// Expiries and now are int64 in one unit and epoch of the caller's choice; in this project
// microseconds since the Unix epoch. An entry lives while now < expires. NoExpiry lives until
// it is evicted or removed.
//
// # Late inserts
//
// A value that was read before an invalidation may arrive after it, and must not undo it.
// AddIf decides under the lock that Remove and Purge take. That makes two protocols safe:
//
//   - Versions: values carry a number that grows. The invalidation stores a newer value. The
//     insert gives way to an entry with a larger number.
//   - Watermark: the invalidation first raises an atomic number, then calls Remove or Purge.
//     The insert's function loads that number, and gives way when its value was read under a
//     smaller one. Either the insert sees the raised number, or it ran before the Remove,
//     which takes the value away.
//
// The first protocol forgets with the entry: an eviction loses the number. The second does not.
package cache

import (
	"fmt"
	"hash/maphash"
	"math"
)

// NoExpiry is the expiry of an entry that does not expire.
const NoExpiry = math.MaxInt64

const (
	// maxShards is enough that a few dozen cores seldom meet at one lock.
	maxShards = 64
	// minShardSize keeps small caches in few shards: keys spread unevenly, and
	// a shard of a few entries would evict while others are empty.
	minShardSize = 128
)

// Cache is a bounded, sharded, expiring LRU, safe for concurrent use. Make it
// with New. Values are copied out: share what they point to read-only.
type Cache[K comparable, V any] struct {
	seed    maphash.Seed
	mask    uint64
	shards  []shard[K, V]
	evicted func(K, V) // nil: nobody wants to know
}

// New makes a cache that never holds more than size entries. size must be at least 1. From a
// size of 256 on the keys are spread over 2 to 64 shards. Each shard has its share of the
// size, so a cache may evict a little before it is full.
func New[K comparable, V any](size int) (*Cache[K, V], error) {
	return NewWeighed(size, 1, func(K, V) int { return 1 })
}

// NewWeighed makes a cache that is bounded by weight: all entries together weigh at most size
// times usual. Both must be at least 1. weigh returns the weight of an entry, above 0 and
// always the same for the same entry. It runs under the shard's lock. The shards are those of
// New. An entry is not kept if it weighs more than usual and more than a quarter of its
// shard's room: it would evict too many others.
func NewWeighed[K comparable, V any](size, usual int, weigh func(K, V) int) (*Cache[K, V], error) {
	if size < 1 {
		return nil, fmt.Errorf("cache: size %d is below 1", size)
	}
	n := 1
	for n < maxShards && size/(2*n) >= minShardSize {
		n *= 2
	}
	c := &Cache[K, V]{seed: maphash.MakeSeed(), mask: uint64(n - 1), shards: make([]shard[K, V], n)}
	for i := range c.shards {
		s, share := &c.shards[i], size/n
		if i < size%n {
			share++
		}
		s.weigh, s.room = weigh, share*usual
		s.most = max(usual, s.room/4)
		s.reset()
	}
	return c, nil
}

// OnEvict sets a function that is called with each entry that was evicted to make room. The
// goroutine that added the other entry calls it after the addition, without a lock. The key
// may be in the cache again by then. OnEvict must be called before the cache is used.
func (c *Cache[K, V]) OnEvict(evicted func(key K, value V)) { c.evicted = evicted }

// drop calls evicted with each of the items that made room.
func (c *Cache[K, V]) drop(items []*item[K, V]) {
	if c.evicted == nil {
		return
	}
	for _, it := range items {
		c.evicted(it.key, it.value)
	}
}

func (c *Cache[K, V]) shard(key K) *shard[K, V] {
	return &c.shards[maphash.Comparable(c.seed, key)&c.mask]
}

// Get returns the value of a key whose expiry is after now, and makes it the
// most recently used. An expired entry is removed and not returned. Get does
// not allocate, and does not lock for a key that is read over and over.
func (c *Cache[K, V]) Get(key K, now int64) (V, bool) {
	s := c.shard(key)
	if it := s.hot.Load(); it != nil && it.key == key && now < it.expires {
		return it.value, true
	}
	return s.get(key, now)
}

// Add sets a key's value and expiry, whatever was there. It evicts the least recently used
// entries of the shard until the new one fits. An entry that weighs too much is not kept, and
// the key's old entry is removed.
func (c *Cache[K, V]) Add(key K, value V, expires int64) {
	s := c.shard(key)
	s.mu.Lock()
	evicted, _ := s.add(key, value, expires)
	s.mu.Unlock()
	c.drop(evicted)
}

// AddIf calls decide with the key's value, and stores what decide returns when keep is true.
// ok is false when there is no value, or it expired at or before now. AddIf reports whether it
// stored. decide runs under the shard's lock: nothing can come between it and the store. It
// must be short and must not use this cache. A decide that panics changes nothing.
func (c *Cache[K, V]) AddIf(key K, now int64, decide func(old V, ok bool) (value V, expires int64, keep bool)) bool {
	evicted, kept := c.shard(key).addIf(key, now, decide)
	c.drop(evicted)
	return kept
}

// Remove forgets a key and reports whether it was there. Once it has returned,
// no Get gives what was there before.
func (c *Cache[K, V]) Remove(key K) bool {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(key)
}

// Len returns the number of entries, those included that have expired and that
// nobody asked for since.
func (c *Cache[K, V]) Len() int {
	n := 0
	for i := range c.shards {
		n += c.shards[i].len()
	}
	return n
}

// Evictions returns how many entries, since New, were dropped to make room.
// Removed and replaced ones do not count, nor expired ones that Get
// found; an expired one that made room does.
func (c *Cache[K, V]) Evictions() uint64 {
	var n uint64
	for i := range c.shards {
		n += c.shards[i].evictions.Load()
	}
	return n
}
