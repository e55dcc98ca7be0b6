package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

const person = "jane.doe@example.org"

// tablesWith are the tables of which some row's text has a word.
func tablesWith(t testing.TB, s *store.Store, word string) (found []string) {
	t.Helper()
	rows, _ := s.Pool().Query(t.Context(), `SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1`)
	tables := planstest.Must[[]string](t)(pgx.CollectRows(rows, pgx.RowTo[string]))
	if len(tables) < 10 {
		t.Fatalf("found only the tables %q", tables)
	}
	for _, table := range tables {
		var there bool
		statement := fmt.Sprintf("SELECT EXISTS (SELECT FROM %s r WHERE r::text LIKE '%%' || $1 || '%%')", pgx.Identifier{table}.Sanitize())
		if err := s.Pool().QueryRow(t.Context(), statement, word).Scan(&there); err != nil {
			t.Fatal(err)
		}
		if there {
			found = append(found, table)
		}
	}
	return found
}

// putPerson makes a customer that everything is known of.
func putPerson(t testing.TB, s *store.Store) *plans.Customer {
	t.Helper()
	in := planstest.OnPlan("basic")
	in.Name = "Jane Doe"
	in.Metadata = map[string]string{"mail": person}
	in.Features = map[string]any{"greeting": "Hello " + person}
	c := planstest.PutCustomer(t, s, person, in)
	planstest.WriteOverride(t, s, person, plans.OverrideInput{Limit: 9})
	return c
}

func TestErase(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := newNode(t, url, "")
	n.sweeper.scrubEvery, n.sweeper.scrubAfter = 10*time.Millisecond, time.Hour
	s := n.start(t).Store
	other := startNode(t, url, "")
	planstest.Populate(t, s)
	old := putPerson(t, s)
	for _, node := range []*node{n, other} {
		testkit.Eventually(t, "the person", func() bool { return node.knows(t, person) })
	}
	erased, err := s.EraseCustomer(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(plans.ErasedPrefix, old.ID)
	if erased.Key != want || erased.ID != old.ID || erased.Name != "" || len(erased.Metadata)+len(erased.Features) > 0 ||
		erased.ArchivedAt == nil || erased.ErasedAt == nil || erased.Change != planstest.ChangeNumber(t, s) || !erased.CreatedAt.Equal(old.CreatedAt) {
		t.Errorf("left is %+v", erased)
	}
	soon(t, "the erasure", func(n *node) bool { return !n.knows(t, person) }, n, other)
	if _, err := s.GetCustomer(t.Context(), person); !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Errorf("the old key: %v", err)
	}
	if _, err := s.EraseCustomer(t.Context(), person); !errors.Is(err, plans.ErrUnknownCustomer) {
		t.Errorf("the old key again: %v", err)
	}
	again, err := s.EraseCustomer(t.Context(), want)
	if err != nil || again.Key != want || again.Change != erased.Change || planstest.ChangeNumber(t, s) != erased.Change {
		t.Errorf("again: %+v, %v", again, err)
	}
	if n := planstest.Count(t, s, "count(*) FROM customers WHERE id = $1 AND key = $2", old.ID, want); n != 1 {
		t.Errorf("what reports say is not %s", want)
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
	n := newNode(t, url, "")
	n.sweeper.scrubEvery, n.sweeper.scrubAfter = 10*time.Millisecond, 0
	s := n.start(t).Store
	planstest.Populate(t, s)
	putPerson(t, s)
	if _, err := s.EraseCustomer(t.Context(), person); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "a clean database", func() bool { return len(tablesWith(t, s, "jane.doe")) == 0 })
	if tables := append(tablesWith(t, s, "Jane"), tablesWith(t, s, "Hello")...); len(tables) > 0 {
		t.Errorf("still something in %q", tables)
	}
	if got := n.meets(t, "acme"); got != 5 {
		t.Errorf("another customer meets %d", got)
	}
	planstest.PutPlan(t, s, "basic", planstest.Hourly(6)) // the node goes on from the changes that it saw
	if got := n.meets(t, "acme"); got != 6 || n.forgot() {
		t.Errorf("meets %d; forgot everything: %v", got, n.forgot())
	}
}

// A node that was away while the key was swept out does not go on letting hits in under it.
func TestANodeThatMissedAnErasure(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	admin := planstest.NewStore(t, url)
	planstest.Populate(t, admin)
	putPerson(t, admin)
	away := newNode(t, url, "")
	if got := away.meets(t, person); got != 9 {
		t.Fatalf("meets %d", got)
	}
	away.meets(t, "acme")
	if _, err := admin.EraseCustomer(t.Context(), person); err != nil {
		t.Fatal(err)
	}
	if err := away.sweeper.scrub(t.Context(), planstest.DatabaseNow(t, admin).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	planstest.PutPlan(t, admin, "other", planstest.Hourly(6))
	if err := away.catalog.CatchUp(t.Context(), planstest.ChangeNumber(t, admin)); err != nil {
		t.Fatal(err)
	}
	if away.knows(t, person) {
		t.Error("resolved the erased customer")
	}
	if got := away.meets(t, "acme"); got != 5 || away.forgot() {
		t.Errorf("another customer meets %d", got)
	}
}

// The old key is free. What happens to its next customer stays in the changes, and a node
// that hears late of both learns of the right one.
func TestAKeyAfterItsErasure(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	s := planstest.NewStore(t, url)
	planstest.Populate(t, s)
	old := putPerson(t, s)
	away := newNode(t, url, "")
	away.meets(t, person)
	erased, err := s.EraseCustomer(t.Context(), person)
	if err != nil {
		t.Fatal(err)
	}
	next := planstest.PutCustomer(t, s, person, planstest.OnPlan("basic"))
	if next.ID == old.ID || next.Change != erased.Change+1 {
		t.Errorf("the next one: %+v", next)
	}
	if err := away.sweeper.scrub(t.Context(), planstest.DatabaseNow(t, s).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	type change struct {
		Number    int64
		Kind, Key string
	}
	rows, _ := s.Pool().Query(t.Context(), "SELECT number, kind, key FROM changes WHERE number >= $1 ORDER BY number", old.Change)
	changes := planstest.Must[[]change](t)(pgx.CollectRows(rows, pgx.RowToStructByPos[change]))
	for i, c := range changes {
		want := change{old.Change + int64(i), store.KindErased, ""}
		if c.Number == next.Change {
			want.Kind, want.Key = store.KindCustomer, person
		}
		if c != want {
			t.Errorf("the change is %+v, not %+v", c, want)
		}
	}
	if last := old.Change + int64(len(changes)) - 1; last != next.Change {
		t.Errorf("the last change is %d, not %d", last, next.Change)
	}
	if err := away.catalog.CatchUp(t.Context(), next.Change); err != nil {
		t.Fatal(err)
	}
	if got := away.meets(t, person); got != 5 {
		t.Errorf("the next one meets %d", got)
	}
	if both := planstest.Must[*plans.List[*plans.Customer]](t)(s.ListCustomers(t.Context(), "", plans.Page{})); len(both.Items) != 3 {
		t.Errorf("%d customers", len(both.Items))
	}
}

func sweeperOf(s *store.Store) *Sweeper {
	return NewSweeper(s, planstest.WallClock, slog.New(slog.DiscardHandler))
}

// Many that are due among as many changes as there can be: their keys are out soon, and
// no write waits long for that.
func TestManyErasuresAreScrubbed(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	const changesKept = 100_000
	erasures, changes := 1000, changesKept*9/10
	if testing.Short() {
		erasures, changes = 500, changesKept/2
	}
	first := planstest.ChangeNumber(t, s)
	for sql, args := range map[string][]any{
		`INSERT INTO changes (number, kind, key)
			SELECT n, CASE n % 5 WHEN 0 THEN 'plan' ELSE 'customer' END, 'c' || n % (2 * $2::bigint)
			FROM generate_series($1::bigint + 1, $1 + $3::bigint) n`: {first, erasures, changes},
		`INSERT INTO erasures SELECT $1::bigint + n, 'c' || n, 0 FROM generate_series($2::bigint - 999, $2) n WHERE n > 0`: {first + int64(changes)/2, erasures},
		`UPDATE change_number SET number = number + $1`:                                                                    {changes},
	} {
		if _, err := s.Pool().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	const named = "count(*) FROM changes c JOIN erasures e USING (key) WHERE kind = 'customer' AND number <= change"
	due, all := planstest.Count(t, s, named), planstest.Count(t, s, "count(*) FROM changes WHERE kind = 'customer'")
	if due == 0 || due == all {
		t.Fatalf("%d of %d changes are due", due, all)
	}
	var longest time.Duration
	writes := 0
	scrubbing := make(chan error, 1)
	began := time.Now()
	go func() { scrubbing <- sweeperOf(s).scrub(t.Context(), 1) }()
	for done := false; !done; {
		start := time.Now()
		planstest.Declare(t, s, fmt.Sprint("m", writes))
		writes++
		longest = max(longest, time.Since(start))
		select {
		case err := <-scrubbing:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	testkit.AtMost(t, "the scrubbing", time.Since(began), 5*time.Second)
	testkit.AtMost(t, "a write beside it", longest, time.Second)
	t.Logf("%d changes of %d customers in %s; the longest of %d writes took %s", due, erasures, time.Since(began), writes, longest)
	const largest = "max(n) FROM (SELECT count(*) AS n FROM changes WHERE kind = 'erased' GROUP BY xmin::text) t"
	if rows := planstest.Count(t, s, largest); rows > scrubRows { // a write waits for one transaction at most
		t.Errorf("a transaction scrubbed %d changes", rows)
	}
	if left := planstest.Count(t, s, "count(*) FROM erasures"); left != 0 ||
		planstest.Count(t, s, "count(*) FROM changes WHERE kind = 'erased' AND key = ''") != due ||
		planstest.Count(t, s, "count(*) FROM changes WHERE kind = 'customer'") != all-due {
		t.Errorf("%d are left, or other changes were scrubbed than the %d due", left, due)
	}
}

// Sweeping does not wait for ever for a write, nor for its own end.
func TestScrubWaitsWithADeadline(t *testing.T) {
	t.Parallel()
	s := planstest.PopulatedStore(t)
	if _, err := s.EraseCustomer(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	blocker, err := s.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = blocker.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := blocker.Exec(t.Context(), "SELECT FROM change_number FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := sweeperOf(s).scrub(ctx, planstest.DatabaseNow(t, s).UnixMicro()); err == nil {
		t.Error("it passed a lock")
	}
}
