package catalog

import (
	"context"
	"sync"
	"time"

	"quotad/internal/plans/store"
)

const (
	// useEvery is how often the days of keys' uses are written.
	useEvery = 5 * time.Second
	// maxUses bounds the keys whose day is remembered as written. Beyond it some are written
	// again.
	maxUses = 20_000
	day     = int64(24 * 3600e6)
)

// uses gathers the keys that were used, to write the day of it once for each key.
type uses struct {
	mu      sync.Mutex
	used    map[*liveKey]struct{} // since the last write
	day     int64                 // of written, days since the Unix epoch
	written map[string]struct{}   // ids of keys whose use on that day is stored
}

// use marks a key as used. It takes one read of memory for a key that is marked already.
func (c *Catalog) use(key *liveKey) {
	if key.used.Load() || !key.used.CompareAndSwap(false, true) {
		return
	}
	c.uses.mu.Lock()
	defer c.uses.mu.Unlock()
	if c.uses.used == nil {
		c.uses.used = make(map[*liveKey]struct{})
	}
	if len(c.uses.used) < maxUses {
		c.uses.used[key] = struct{}{}
	}
}

// RunUses writes the days of keys' uses to a store until ctx ends. A node writes the day of a key once. What
// cannot be written is tried again when the key is used again.
func (c *Catalog) RunUses(ctx context.Context, to *store.Store) {
	tick := time.NewTicker(useEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.writeUses(ctx, to); err != nil && ctx.Err() == nil {
			c.options.Log.Debug("the days of keys' uses could not be written", "error", err)
		}
	}
}

func (c *Catalog) writeUses(ctx context.Context, to *store.Store) error {
	now, err := c.options.Now(ctx)
	if err != nil {
		return err
	}
	u := &c.uses
	u.mu.Lock()
	gathered := u.used
	u.used = nil
	if today := now / day; today != u.day || len(u.written) >= maxUses {
		u.day, u.written = today, make(map[string]struct{})
	}
	var ids []string
	for key := range gathered {
		key.used.Store(false)
		if _, done := u.written[key.ID]; !done {
			ids = append(ids, key.ID)
		}
	}
	u.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	if err := to.KeysUsed(ctx, ids, time.UnixMicro(now).UTC()); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		u.written[id] = struct{}{}
	}
	return nil
}
