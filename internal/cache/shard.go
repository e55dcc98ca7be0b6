package cache

import (
	"math"
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

// A shard is an LRU under a lock, and one item that can be read without the lock.
//
// An LRU writes on every read. So all cores would queue for a key that all of them read, such
// as a customer who is refused thousands of times a second. The second read in a row of one
// item puts it in hot, where reading it writes nothing. Such reads do not reach the LRU's
// order; retireHot makes up for them before the order is used.
type shard[K comparable, V any] struct {
	hot atomic.Pointer[item[K, V]]
	_   [120]byte // padding: keeps hot off the cache lines that writers of the fields below change

	mu         sync.Mutex
	lru        *simplelru.LRU[K, *item[K, V]]
	last       *item[K, V] // the item that get returned last
	weigh      func(K, V) int
	room, most int // the most that all items may weigh, and one item; most ≤ room
	weight     int // what all items weigh
	evictions  atomic.Uint64
	_          [64]byte // padding: keeps the next shard off these cache lines
}

// reset empties the shard. A new LRU is quicker, under the lock, than emptying
// the old one, and gives its memory back.
func (s *shard[K, V]) reset() {
	gone := func(key K, it *item[K, V]) { s.weight -= s.weigh(key, it.value) }
	lru, err := simplelru.NewLRU(math.MaxInt, gone) // add bounds it
	if err != nil {
		panic("cache: " + err.Error()) // only for a size below 1
	}
	s.lru, s.last, s.weight = lru, nil, 0
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

// peek returns a key's value without making it recently used. The caller holds the lock.
func (s *shard[K, V]) peek(key K, now int64) (value V, ok bool) {
	it, ok := s.lru.Peek(key)
	if !ok || now >= it.expires {
		return value, false
	}
	return it.value, true
}

// add sets a key's item. Where the new item weighs too much to be kept, add removes the old
// one instead. It returns the items that it evicted. The caller holds the lock.
func (s *shard[K, V]) add(key K, value V, expires int64) (evicted []*item[K, V], kept bool) {
	more := s.weigh(key, value)
	if more > s.most {
		s.remove(key)
		return nil, false
	}
	if old, ok := s.lru.Peek(key); ok {
		more -= s.weigh(key, old.value)
	}
	it := &item[K, V]{key, value, expires}
	if s.weight += more; s.weight > s.room {
		s.retireHot()
	} else if hot := s.hot.Load(); hot != nil && hot.key == key {
		s.hot.Store(it)
	}
	s.lru.Add(key, it)
	for s.weight > s.room {
		_, oldest, _ := s.lru.RemoveOldest()
		evicted = append(evicted, oldest)
	}
	s.evictions.Add(uint64(len(evicted)))
	return evicted, true
}

// addIf is AddIf, but leaves the call of evicted to its caller, who holds no lock.
func (s *shard[K, V]) addIf(key K, now int64, decide func(old V, ok bool) (value V, expires int64, keep bool)) (evicted []*item[K, V], kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.peek(key, now)
	value, expires, keep := decide(old, ok)
	if !keep {
		return nil, false
	}
	return s.add(key, value, expires)
}

// remove forgets a key's item. The lock is held.
func (s *shard[K, V]) remove(key K) bool {
	if hot := s.hot.Load(); hot != nil && hot.key == key {
		s.hot.Store(nil)
	}
	s.last = nil // or it would keep the value from the garbage collector
	return s.lru.Remove(key)
}

// retireHot makes the hot item an ordinary one again, as the most recently used. The LRU has
// not seen the reads of the hot item, so nobody knows when the last one was. If it was long
// ago, an old item stays for one round more. The caller holds the lock.
func (s *shard[K, V]) retireHot() {
	if hot := s.hot.Load(); hot != nil {
		s.lru.Get(hot.key)
		s.hot.Store(nil)
		s.last = nil
	}
}

func (s *shard[K, V]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lru.Len()
}
