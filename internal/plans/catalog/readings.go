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
	// maxTogether is the greatest number of customers that one statement reads.
	maxTogether = 500
	// maxWaiting is the number of such statements that may wait. Customers that would need a further
	// statement get ErrBusy.
	maxWaiting = 20
	// maxReaders is the number of such statements that a node runs at once.
	maxReaders = 2
)

// A reading is a read of several customers by one statement. If there are more customers than the memory
// can contain, nearly every hit has to read a customer. A statement for each customer would cost several
// times as much as the hit. Callers that arrive while maxReaders statements are running therefore join
// the next reading.
type reading struct {
	keys []string
	done chan struct{}
	// The fields below are valid once done is closed. found contains the entry that was read for each key.
	// bad contains the errors of customers whose stored data is invalid. err is the error of the whole
	// reading.
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

// join adds a key to a reading that has not begun, so that the result is no older than the call. If begin
// is true, the caller must start a reader. r is nil if too many readings are waiting.
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

// next removes the oldest reading from the queue and returns it. The result is nil if the queue is empty,
// and the reader then ends.
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

// readCustomer reads a customer's entry, together with the entries that other callers need.
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

// read performs a reading. An entry is cached only after all changes up to its number are applied here.
func (c *Catalog) read(ctx context.Context, m *memory, r *reading) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Within)
	defer cancel()
	for left := r.keys; len(left) > 0; { // repeat for customers that were created between the two statements
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

// missing returns the keys whose customers have not been read yet.
func (r *reading) missing(keys []string) (left []string) {
	for _, key := range keys {
		if r.found[key] == nil && r.bad[key] == nil {
			left = append(left, key)
		}
	}
	return left
}

const loadCustomers = entryOfCustomer + ` AND c.key = ANY ($1::text[])`

// readKnown reads the customers that exist.
func (c *Catalog) readKnown(ctx context.Context, m *memory, r *reading, keys []string) error {
	now, err := c.options.Now(ctx)
	if err != nil {
		return err
	}
	rows, _ := c.pool.Query(ctx, loadCustomers, keys) // rows.Err reports its error
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
		entry.reached.Store(now) // an override that has ended by then is recognized without a hit
		r.found[key] = entry
	}
	return rows.Err()
}

const loadNoCustomers = `
	SELECT n.number, k.key, c.key IS NOT NULL AND c.archived_at IS NULL, c.archived_at IS NOT NULL
	FROM change_number n CROSS JOIN unnest($1::text[]) AS k (key) LEFT JOIN customers c ON c.key = k.key`

// readUnknown records the keys that belong to no customer or to an archived customer. Other keys are left
// out.
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
