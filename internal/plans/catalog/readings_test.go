package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

// Who asks while readers are at work joins what has not begun, and never what has.
func TestReadingsGather(t *testing.T) {
	var rs readings
	join := func(key string, begins bool) *reading {
		t.Helper()
		r, begin := rs.join(key)
		if begin != begins {
			t.Fatalf("%s: begin %v", key, begin)
		}
		return r
	}
	for i := range maxReaders {
		r := join(fmt.Sprint("first-", i), true)
		if rs.next() != r {
			t.Fatal("a reader does not get what it was started for")
		}
	}
	gathering := join("a", false)
	for i := 1; i < maxTogether; i++ {
		if join(fmt.Sprint("a", i), false) != gathering {
			t.Fatalf("%d: it does not join the others", i)
		}
	}
	over := join("b", false)
	if over == gathering || len(gathering.keys) != maxTogether {
		t.Errorf("%d are read together", len(gathering.keys))
	}
	if join("a", false) != gathering || join("b", false) != over || len(over.keys) != 1 {
		t.Error("one key is read twice")
	}
	if rs.next() != gathering {
		t.Error("the oldest is not the next")
	}
	if join("a", false) != over {
		t.Error("a reading that has begun is joined")
	}
	if rs.next() != over || rs.next() != nil || rs.next() != nil || rs.readers != 0 {
		t.Errorf("%d readers at the end", rs.readers)
	}
	join("c", true)
}

// strangers is a catalog of n customers, c1 and so on, that it has not read yet. c7 cannot be read,
// and c8 is archived.
func strangers(t *testing.T, n int) *Catalog {
	t.Helper()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	if _, err := admin.Pool().Exec(t.Context(), `
		INSERT INTO customers (key, name, plan_id, joined_version, timezone, billing_anchor, change)
		SELECT 'c' || n, 'C', 1, 1, CASE n WHEN 7 THEN 'Nowhere' ELSE 'UTC' END, '2026-01-31T00:00:00', 1
		FROM generate_series(1, $1::integer) n`, n); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Pool().Exec(t.Context(), `UPDATE customers SET archived_at = now() WHERE key = 'c8'`); err != nil {
		t.Fatal(err)
	}
	c := idleCatalog(t, url, testOptions())
	if err := c.CatchUp(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return c
}

// Many customers that nobody knows yet: each gets its own answer, and few statements do it.
func TestManyAreReadTogether(t *testing.T) {
	const customers = 300
	c := strangers(t, customers)
	release := holdConnections(t, storeOf(c))
	m := c.memory.Load()
	gathered := func() (readers, keys int) {
		m.readings.mu.Lock()
		defer m.readings.mu.Unlock()
		for _, r := range m.readings.queue {
			keys += len(r.keys)
		}
		return m.readings.readers, keys
	}
	var asking sync.WaitGroup
	var giveUp context.CancelFunc
	gaveUp := make(chan struct{})
	for i := range customers + 2 {
		ctx := t.Context()
		if i == 9 {
			ctx, giveUp = context.WithCancel(ctx)
		}
		asking.Go(func() {
			target, err := c.Resolve(ctx, fmt.Sprint("c", i), "api", 0)
			switch i {
			case 0, 8, customers + 1: // there is none, or it is archived
				if !errors.Is(err, plans.ErrUnknownCustomer) {
					t.Errorf("c%d: %v", i, err)
				}
			case 7:
				if err == nil || errors.Is(err, plans.ErrUnknownCustomer) || errors.Is(err, session.ErrUnavailable) {
					t.Errorf("what cannot be read is taken as %+v, %v", target, err)
				}
			case 9:
				if close(gaveUp); err == nil {
					t.Error("who gave up got an answer")
				}
			default:
				if err != nil || target.Counters[0].Key.Customer == 0 {
					t.Errorf("c%d: %v", i, err)
				}
			}
		})
		if i < maxReaders { // they wait for a connection, and the others for them
			testkit.Eventually(t, "a reader to begin", func() bool {
				readers, keys := gathered()
				return readers == i+1 && keys == 0
			})
		}
	}
	testkit.Eventually(t, "all to ask", func() bool {
		_, keys := gathered()
		return keys == customers+2-maxReaders
	})
	if n := len(m.readings.queue); n != 1 {
		t.Errorf("they are %d readings", n)
	}
	giveUp()
	<-gaveUp
	release()
	asking.Wait()
	testkit.Eventually(t, "the readers' end", func() bool {
		readers, _ := gathered()
		return readers == 0
	})
	if known := m.customers.Len(); known != customers-2 {
		t.Errorf("%d are remembered", known)
	}
}
