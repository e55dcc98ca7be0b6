package cache

// Purge forgets all keys, a shard at a time. Once it has returned, no Get gives
// what was there when it was called.
func (c *Cache[K, V]) Purge() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.reset()
		s.mu.Unlock()
	}
}
