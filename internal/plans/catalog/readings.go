package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans/store"
	"quotad/internal/quota/session"
)

const (
	// maxTogether is how many customers one statement reads.
	maxTogether = 500
	// maxWaiting is how many such statements may wait. Customers that would need one more get
	// ErrBusy.
	maxWaiting = 20
	// maxReaders is how many such statements a node runs at once.
	maxReaders = 2
)

// A reading is a read of several customers by one statement. Where there are more customers
// than the memory holds, nearly every hit has to read one. A statement for each would cost
// several times what the hit does. So callers that come while maxReaders statements run join
// the next reading.
type reading struct {
	keys []string
	done chan struct{}
	// Valid once done is closed. found is what was read of each key. bad is why the stored
	// data of a customer cannot be used. err is why the whole reading failed.
	found map[string]*customerEntry
	bad   map[string]error
	err   error
}

// readings is the queue of readings that have not begun, the oldest first.
type readings struct {
	mu      sync.Mutex
	queue   []*reading
	readers int
}

// join adds a key to a reading that has not begun, so that the answer is no older than the
// question. begin tells the caller to start a reader. r is nil when too many readings wait.
func (rs *readings) join(key string) (r *reading, begin bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.queue {
		if _, there := r.found[key]; there {
			return r, false
		}
	}
	switch n := len(rs.queue); {
	case n > 0 && len(rs.queue[n-1].keys) < maxTogether:
		r = rs.queue[n-1]
	case n == maxWaiting:
		return nil, false
	default:
		r = &reading{done: make(chan struct{}), found: make(map[string]*customerEntry), bad: make(map[string]error)}
		rs.queue = append(rs.queue, r)
	}
	r.keys = append(r.keys, key)
	r.found[key] = nil
	if rs.readers == maxReaders {
		return r, false
	}
	rs.readers++
	return r, true
}

// next takes the oldest reading. It is nil when none is left, and then the reader ends.
func (rs *readings) next() *reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.queue) == 0 {
		rs.readers--
		return nil
	}
	r := rs.queue[0]
	rs.queue = slices.Delete(rs.queue, 0, 1)
	return r
}

var errManyReadings = fmt.Errorf("%w: too many customers are to be looked up", session.ErrBusy)

// readCustomer reads a customer's entry, together with those that others ask for.
func (c *Catalog) readCustomer(ctx context.Context, m *memory, key string) (*customerEntry, error) {
	r, begin := m.readings.join(key)
	if r == nil {
		return nil, errManyReadings
	}
	if begin {
		go func() { //nolint:gosec,contextcheck // it is of many callers, and has a deadline of its own
			for r := m.readings.next(); r != nil; r = m.readings.next() {
				r.err = store.Classify(c.read(context.Background(), m, r))
				close(r.done)
			}
		}()
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, store.Classify(ctx.Err())
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.found[key], store.Classify(r.bad[key])
}

// read does a reading. An entry is remembered only after all changes up to its number count
// here.
func (c *Catalog) read(ctx context.Context, m *memory, r *reading) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Within)
	defer cancel()
	for left := r.keys; len(left) > 0; { // again for customers that were made between the two statements
		if err := c.readKnown(ctx, m, r, left); err != nil {
			return err
		}
		if left = r.missing(left); len(left) == 0 {
			break
		}
		if err := c.readUnknown(ctx, m, r, left); err != nil {
			return err
		}
		left = r.missing(left)
	}
	newest := int64(0)
	for _, e := range r.found {
		if e != nil {
			newest = max(newest, e.asOf)
		}
	}
	if err := c.CatchUp(ctx, newest); err != nil {
		return err
	}
	for key, e := range r.found {
		if e != nil {
			c.keep(m, key, e)
		}
	}
	return nil
}

// missing are those of the keys of which nothing is known yet.
func (r *reading) missing(keys []string) (left []string) {
	for _, key := range keys {
		if r.found[key] == nil && r.bad[key] == nil {
			left = append(left, key)
		}
	}
	return left
}

const loadCustomers = entryOfCustomer + ` AND c.key = ANY ($1::text[])`

// readKnown reads those of the customers that exist.
func (c *Catalog) readKnown(ctx context.Context, m *memory, r *reading, keys []string) error {
	now, err := c.options.Now(ctx)
	if err != nil {
		return err
	}
	rows, _ := c.pool.Query(ctx, loadCustomers, keys) // its error is that of rows
	defer rows.Close()
	for rows.Next() {
		key, entry, err := m.scanEntry(rows)
		if key == "" {
			return err
		}
		if err != nil {
			r.bad[key] = err
			continue
		}
		entry.reached.Store(now) // what has ended by then needs no hit that finds it out
		r.found[key] = entry
	}
	return rows.Err()
}

const loadNoCustomers = `
	SELECT n.number, k.key, c.key IS NOT NULL AND c.archived_at IS NULL, c.archived_at IS NOT NULL
	FROM change_number n CROSS JOIN unnest($1::text[]) AS k (key) LEFT JOIN customers c ON c.key = k.key`

// readUnknown notes those of the keys that are no living customer's. It leaves out the others.
func (c *Catalog) readUnknown(ctx context.Context, m *memory, r *reading, keys []string) error {
	var asOf int64
	var key string
	var exists, gone bool
	rows, _ := c.pool.Query(ctx, loadNoCustomers, keys)
	_, err := pgx.ForEachRow(rows, []any{&asOf, &key, &exists, &gone}, func() error {
		if !exists {
			r.found[key] = &customerEntry{fact: m.fact(store.KindCustomer, key, asOf), gone: gone}
		}
		return nil
	})
	return err
}
