package cache

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// An item is an entry. It never changes once it is in a shard, so that hot may
// be read without the lock; a new value is a new item.
type item[K comparable, V any] struct {
	key     K
	value   V
	expires int64
}

// A shard is an LRU under a lock, and one item that can be read past the lock.
//
// An LRU writes on every read, so one key that all cores read (a customer who
// is refused thousands of times a second) would make them queue. The second
// read in a row of one item puts it in hot, where reading it writes nothing.
// Such reads do not reach the LRU's order; retireHot makes up for them before
// the order is used.
type shard[K comparable, V any] struct {
	hot atomic.Pointer[item[K, V]]
	_   [120]byte // readers of hot must not wait for writers of what follows

	mu        sync.Mutex
	lru       *simplelru.LRU[K, *item[K, V]]
	last      *item[K, V] // what get returned last
	size      int
	evictions atomic.Uint64
	_         [88]byte // nor for the next shard's
}

// init makes the shard empty, with room for size > 0 items.
func (s *shard[K, V]) init(size int) {
	s.size = size
	s.reset()
}

// reset empties the shard. A new LRU is quicker, under the lock, than emptying
// the old one, and gives its memory back.
func (s *shard[K, V]) reset() {
	lru, err := simplelru.NewLRU[K, *item[K, V]](s.size, nil)
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	s.lru, s.last = lru, nil
	s.hot.Store(nil)
}

// get is Get for a key that is not hot.
func (s *shard[K, V]) get(key K, now int64) (value V, ok bool) {
	s.mu.Lock()
	it, ok := s.lru.Get(key)
	switch {
	case !ok:
	case now >= it.expires:
		s.remove(key)
		ok = false
	default:
		value = it.value
		if it != s.last {
			s.last = it
		} else if s.hot.Load() != it {
			s.retireHot()
			s.hot.Store(it)
		}
	}
	s.mu.Unlock()
	return value, ok
}

// peek returns a key's value without using it. The lock is held.
func (s *shard[K, V]) peek(key K, now int64) (value V, ok bool) {
	it, ok := s.lru.Peek(key)
	if !ok || now >= it.expires {
		return value, false
	}
	return it.value, true
}

// add sets a key's item and returns the one that made room for it, or nil. The lock is held.
func (s *shard[K, V]) add(key K, value V, expires int64) (evicted *item[K, V]) {
	it := &item[K, V]{key, value, expires}
	if hot := s.hot.Load(); hot != nil && hot.key == key {
		s.hot.Store(it)
	} else if s.lru.Len() >= s.size && !s.lru.Contains(key) {
		s.retireHot()
		_, evicted, _ = s.lru.RemoveOldest()
		s.evictions.Add(1)
	}
	s.lru.Add(key, it)
	return evicted
}

// addIf is AddIf without what follows an eviction.
func (s *shard[K, V]) addIf(key K, now int64, decide func(old V, ok bool) (value V, expires int64, keep bool)) (evicted *item[K, V], keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.peek(key, now)
	value, expires, keep := decide(old, ok)
	if keep {
		evicted = s.add(key, value, expires)
	}
	return evicted, keep
}

// remove forgets a key's item. The lock is held.
func (s *shard[K, V]) remove(key K) bool {
	if hot := s.hot.Load(); hot != nil && hot.key == key {
		s.hot.Store(nil)
	}
	s.last = nil // or it would keep the value from the garbage collector
	return s.lru.Remove(key)
}

// retireHot makes the hot item, whose reads the LRU did not see, the most
// recently used one, and an ordinary one. Nobody knows whether it was read
// lately: being wrong keeps an old item for one round more. The lock is held.
func (s *shard[K, V]) retireHot() {
	if hot := s.hot.Load(); hot != nil {
		s.lru.Get(hot.key)
		s.hot.Store(nil)
		s.last = nil
	}
}

func (s *shard[K, V]) purge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
}

func (s *shard[K, V]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.Len()
}
