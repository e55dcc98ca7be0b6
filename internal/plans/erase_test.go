package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres/pgtest"
)

const person = "jane.doe@example.org"

// tablesWith are the tables of which some row's text has a word.
func tablesWith(t testing.TB, s *Store, word string) (found []string) {
	t.Helper()
	rows, _ := s.pool.Query(t.Context(), `SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1`)
	tables := must[[]string](t)(pgx.CollectRows(rows, pgx.RowTo[string]))
	if len(tables) < 10 {
		t.Fatalf("found only the tables %q", tables)
	}
	for _, table := range tables {
		var there bool
		statement := fmt.Sprintf("SELECT EXISTS (SELECT FROM %s r WHERE r::text LIKE '%%' || $1 || '%%')", pgx.Identifier{table}.Sanitize())
		if err := s.pool.QueryRow(t.Context(), statement, word).Scan(&there); err != nil {
			t.Fatal(err)
		}
		if there {
			found = append(found, table)
		}
	}
	return found
}

// putPerson makes a customer that everything is known of.
func putPerson(t testing.TB, s *Store) *Customer {
	t.Helper()
	in := onPlan("basic")
	in.Name = "Jane Doe"
	in.Metadata = map[string]string{"mail": person}
	in.Features = map[string]any{"greeting": "Hello " + person}
	c := putCustomer(t, s, person, in)
	writeOverride(t, s, person, OverrideInput{Limit: 9})
	return c
}

func TestErase(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	c := idleCatalog(t, url, testOptions())
	c.scrubbing = scrubbing{every: 10 * time.Millisecond}
	c.scrubbing.after = time.Hour
	s := start(t, c).store
	_, other := newNode(t, url)
	populate(t, s)
	old := putPerson(t, s)
	for _, node := range []*Catalog{c, other} {
		eventually(t, "the person", func() bool { _, err := node.Resolve(t.Context(), person, "api", 0); return err == nil })
	}
	began := time.Now()
	erased, err := s.EraseCustomer(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(ErasedPrefix, old.ID)
	if erased.Key != want || erased.ID != old.ID || erased.Name != "" || len(erased.Metadata)+len(erased.Features) > 0 ||
		erased.ArchivedAt == nil || erased.ErasedAt == nil || erased.Change != changeNumber(t, s) || !erased.CreatedAt.Equal(old.CreatedAt) {
		t.Errorf("left is %+v", erased)
	}
	for _, node := range []*Catalog{c, other} {
		eventually(t, "nobody", func() bool {
			_, err := node.Resolve(t.Context(), person, "api", 0)
			return errors.Is(err, ErrUnknownCustomer)
		})
	}
	if took := time.Since(began); took > Freshness {
		t.Errorf("the nodes forgot within %s", took)
	}
	if _, err := s.GetCustomer(t.Context(), person); !errors.Is(err, ErrUnknownCustomer) {
		t.Errorf("the old key: %v", err)
	}
	if _, err := s.EraseCustomer(t.Context(), person); !errors.Is(err, ErrUnknownCustomer) {
		t.Errorf("the old key again: %v", err)
	}
	again, err := s.EraseCustomer(t.Context(), want)
	if err != nil || again.Key != want || again.Change != erased.Change || changeNumber(t, s) != erased.Change {
		t.Errorf("again: %+v, %v", again, err)
	}
	if keys, err := s.CustomerKeys(t.Context(), []int64{old.ID}); err != nil || keys[old.ID] != want {
		t.Errorf("what reports say: %v, %v", keys, err)
	}
	// Until the nodes can have heard of it the changes need the key.
	if tables := tablesWith(t, s, person); !slices.Equal(tables, []string{"changes", "erasures"}) {
		t.Errorf("before the sweep the key is in %q", tables)
	}
}

// Some time later no table has anything of the person, and nobody's memory minds.
func TestErasedKeysAreSweptOut(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	c := idleCatalog(t, url, testOptions())
	c.scrubbing = scrubbing{every: 10 * time.Millisecond}
	s := start(t, c).store
	populate(t, s)
	putPerson(t, s)
	memory := c.memory.Load()
	if _, err := s.EraseCustomer(t.Context(), person); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a clean database", func() bool { return len(tablesWith(t, s, "jane.doe")) == 0 })
	if tables := append(tablesWith(t, s, "Jane"), tablesWith(t, s, "Hello")...); len(tables) > 0 {
		t.Errorf("still something in %q", tables)
	}
	if got := meets(t, c, "acme"); got != 5 {
		t.Errorf("another customer meets %d", got)
	}
	putPlan(t, s, "basic", hourly(6)) // the node goes on from the changes that it saw
	if got := meets(t, c, "acme"); got != 6 || c.memory.Load() != memory {
		t.Errorf("meets %d; forgot everything: %v", got, c.memory.Load() != memory)
	}
}

// A node that was away while the key was swept out does not go on letting hits in under it.
func TestANodeThatMissedAnErasure(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := newStore(t, url)
	populate(t, admin)
	putPerson(t, admin)
	away := idleCatalog(t, url, testOptions())
	if got := meets(t, away, person); got != 9 {
		t.Fatalf("meets %d", got)
	}
	meets(t, away, "acme")
	if _, err := admin.EraseCustomer(t.Context(), person); err != nil {
		t.Fatal(err)
	}
	if err := admin.scrub(t.Context(), databaseNow(t, admin).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	putPlan(t, admin, "other", hourly(6))
	before := away.memory.Load()
	if _, err := away.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := away.Resolve(t.Context(), person, "api", 0); !errors.Is(err, ErrUnknownCustomer) {
		t.Errorf("resolved the erased customer: %v", err)
	}
	if got := meets(t, away, "acme"); got != 5 || away.memory.Load() != before {
		t.Errorf("another customer meets %d", got)
	}
}

// The old key is free. What happens to its next customer stays in the changes, and a node
// that hears late of both learns of the right one.
func TestAKeyAfterItsErasure(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := newStore(t, url)
	populate(t, s)
	old := putPerson(t, s)
	away := idleCatalog(t, url, testOptions())
	meets(t, away, person)
	erased, err := s.EraseCustomer(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	next := putCustomer(t, s, person, onPlan("basic"))
	if next.ID == old.ID || next.Change != erased.Change+1 {
		t.Errorf("the next one: %+v", next)
	}
	if err := s.scrub(t.Context(), databaseNow(t, s).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	_, changes, err := changesFrom(t.Context(), s.pool, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		kind, key := kindErased, ""
		switch {
		case c.number == next.Change:
			kind, key = kindCustomer, person
		case c.number < old.Change:
			continue
		}
		if c.kind != kind || c.key != key {
			t.Errorf("change %d is of %s %q", c.number, c.kind, c.key)
		}
	}
	if _, err := away.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := meets(t, away, person); got != 5 {
		t.Errorf("the next one meets %d", got)
	}
	if both := must[*List[*Customer]](t)(s.ListCustomers(t.Context(), Page{})); len(both.Items) != 3 {
		t.Errorf("%d customers", len(both.Items))
	}
}

func TestEraseOfTheArchived(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	if err := s.ArchiveCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	archived := must[*Customer](t)(s.GetCustomer(t.Context(), "acme"))
	erased, err := s.EraseCustomer(t.Context(), "acme")
	if err != nil || !erased.ArchivedAt.Equal(*archived.ArchivedAt) || !erased.ErasedAt.After(*archived.ArchivedAt) {
		t.Errorf("%+v, %v", erased, err)
	}
	for _, key := range []string{"nope", "", "a/b"} {
		if _, err := s.EraseCustomer(t.Context(), key); !errors.Is(err, ErrUnknownCustomer) {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{erased.Key, "erased:", "erased:999"} {
		if _, _, err := s.PutCustomer(t.Context(), key, onPlan("basic"), Precondition{}); !slices.Equal(fields(err), []string{"key"}) {
			t.Errorf("%q can be written: %v", key, err)
		}
	}
	if err := s.ArchiveCustomer(t.Context(), erased.Key); err != nil {
		t.Errorf("archived again: %v", err)
	}
}

// Many that are due among as many changes as there can be: their keys are out soon, and
// no write waits long for that.
func TestManyErasuresAreScrubbed(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	erasures, changes := 1000, changesKept*9/10
	if testing.Short() {
		erasures, changes = 500, changesKept/2
	}
	first := changeNumber(t, s)
	for sql, args := range map[string][]any{
		`INSERT INTO changes (number, kind, key)
			SELECT n, CASE n % 5 WHEN 0 THEN 'plan' ELSE 'customer' END, 'c' || n % (2 * $2::bigint)
			FROM generate_series($1::bigint + 1, $1 + $3::bigint) n`: {first, erasures, changes},
		`INSERT INTO erasures SELECT $1::bigint + n, 'c' || n, 0 FROM generate_series($2::bigint - 999, $2) n WHERE n > 0`: {first + int64(changes)/2, erasures},
		`UPDATE change_number SET number = number + $1`:                                                                    {changes},
	} {
		if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const named = "count(*) FROM changes c JOIN erasures e USING (key) WHERE kind = 'customer' AND number <= change"
	due, all := count(t, s, named), count(t, s, "count(*) FROM changes WHERE kind = 'customer'")
	if due == 0 || due == all {
		t.Fatalf("%d of %d changes are due", due, all)
	}
	var longest time.Duration
	scrubbing := make(chan error, 1)
	began := time.Now()
	go func() { scrubbing <- s.scrub(t.Context(), 1) }()
	for done := false; !done; {
		start := time.Now()
		declare(t, s, fmt.Sprint("m", start.UnixNano()))
		longest = max(longest, time.Since(start))
		select {
		case err := <-scrubbing:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	if took := time.Since(began); took > 5*time.Second || longest > time.Second {
		t.Errorf("it took %s, and a write %s", took, longest)
	}
	t.Logf("%d changes of %d customers in %s; the longest write took %s", due, erasures, time.Since(began), longest)
	if left := count(t, s, "count(*) FROM erasures"); left != 0 || count(t, s, "count(*) FROM changes WHERE kind = 'erased' AND key = ''") != due ||
		count(t, s, "count(*) FROM changes WHERE kind = 'customer'") != all-due {
		t.Errorf("%d are left, or other changes were scrubbed than the %d due", left, due)
	}
}

// Sweeping does not wait for ever for a write, nor for its own end.
func TestScrubWaitsWithADeadline(t *testing.T) {
	t.Parallel()
	s := newStoreWithPopulation(t)
	if _, err := s.EraseCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	blocker, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := blocker.Exec(t.Context(), takeChangeNumber); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.scrub(ctx, databaseNow(t, s).UnixMicro()); err == nil {
		t.Error("it passed a lock")
	}
}

func TestCustomersFeatures(t *testing.T) {
	t.Parallel()
	s, c := newNode(t, pgtest.NewDatabase(t))
	declare(t, s, "api")
	in := hourly(5)
	in.Features = map[string]any{"sso": false, "seats": int64(5), "tier": "gold"}
	putPlan(t, s, "basic", in)
	customer := onPlan("basic")
	customer.Features = map[string]any{"sso": true, "huge": json.Number("900719925474099.000000000001"), "big": json.Number("999999999999999"), "note": "ä"}
	stored := map[string]any{"sso": true, "huge": json.Number("900719925474099.000000000001"), "big": int64(999999999999999), "note": "ä"}
	if put := putCustomer(t, s, "acme", customer); !maps.Equal(put.Features, stored) {
		t.Errorf("stored %v", put.Features)
	}
	putCustomer(t, s, "plain", onPlan("basic"))
	shown := func(customer string) *Plan {
		t.Helper()
		return must[*Account](t)(c.Meters(t.Context(), customer)).Plan
	}
	merged := maps.Clone(stored)
	merged["seats"], merged["tier"] = int64(5), "gold"
	if p := shown("acme"); !maps.Equal(p.Features, merged) || p.Version != 1 || len(p.Limits) != 1 {
		t.Errorf("merged %v", p.Features)
	}
	if first, second := shown("acme"), shown("acme"); first != second {
		t.Error("merged for each who asks")
	}
	if p := shown("plain"); !maps.Equal(p.Features, in.Features) {
		t.Errorf("another customer has %v", p.Features)
	}
	if put := putCustomer(t, s, "acme", onPlan("basic")); put.Features == nil || len(put.Features) != 0 {
		t.Errorf("left out: %v", put.Features)
	}
	if p := shown("acme"); p != shown("plain") {
		t.Errorf("a copy without need: %v", p.Features)
	}
	customer.Features = map[string]any{"a b": true, "list": []any{}, "nul": "\x00", "ok": 1, "fraction": json.Number("1e3")}
	_, _, err := s.PutCustomer(t.Context(), "acme", customer, anyVersion)
	if got := fields(err); !slices.Equal(got, []string{"features", "features.fraction", "features.list", "features.nul"}) {
		t.Errorf("got %q", got)
	}
}
