package catalog

import (
	"context"
	"sync"
	"time"

	"quotad/internal/plans/store"
)

const (
	// useEvery is the interval at which the days of keys' uses are written.
	useEvery = 5 * time.Second
	// maxUses limits the keys whose day is cached as written. Beyond the limit, some days are written again.
	maxUses = 20_000
	day     = int64(24 * 3600e6)
)

// uses collects the keys that were used, so that the day of use is written once for each key.
type uses struct {
	mu      sync.Mutex
	used    map[*liveKey]struct{} // keys used since the last write
	day     int64                 // day of written, in days since the Unix epoch
	written map[string]struct{}   // ids of keys whose use on that day is stored
}

// use marks a key as used. For a key that is already marked, use needs one read of memory.
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

// RunUses writes the days of keys' uses to a store until ctx ends. A node writes each day of a key once.
// A failed write is retried when the key is used again.
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
