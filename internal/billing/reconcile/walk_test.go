package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/billing"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newReconciler is one whose pages take what a slow machine takes.
func newReconciler(t testing.TB) *Reconciler {
	t.Helper()
	r := quickReconciler(t)
	r.page = testkit.Patience
	return r
}

// quickReconciler has the bound of every day.
func quickReconciler(t testing.TB) *Reconciler {
	t.Helper()
	start := time.Now()
	return New(Options{
		Pool:      planstest.NewStore(t, pgtest.NewDatabase(t)).Pool(),
		Stopwatch: func() time.Duration { return time.Since(start) },
	})
}

// numbers walks from 1 to last. look is what is done with a page.
func numbers(r *Reconciler, last int, look func(ctx context.Context, tx pgx.Tx, keys []int) ([]wrong[int], error)) walk[int] {
	return walk[int]{
		r: r, rows: "numbers", checks: []string{CreditsAddUp}, look: look,
		next: func(_ context.Context, _ pgx.Tx, after, n int) (keys []int, err error) {
			for k := after + 1; k <= last && len(keys) < n; k++ {
				keys = append(keys, k)
			}
			return keys, nil
		},
	}
}

// Each row is looked at once, in pages, and what disagrees is counted. Ten examples are kept.
func TestAWalkLooksAtEachRowOnce(t *testing.T) {
	r, found := newReconciler(t), newFindings()
	var seen []int
	w := numbers(r, 5000, func(_ context.Context, _ pgx.Tx, keys []int) (bad []wrong[int], err error) {
		if len(keys) > maxPage {
			t.Errorf("a page of %d", len(keys))
		}
		for _, k := range keys {
			if k%100 == 0 {
				bad = append(bad, wrong[int]{k, CreditsAddUp, Disagreement{Detail: "x"}})
			} else {
				seen = append(seen, k)
			}
		}
		return bad, nil
	})
	if err := w.run(t.Context(), 0, found); err != nil {
		t.Fatal(err)
	}
	c := found.of[CreditsAddUp]
	if c.Checked != 5000 || c.Rows != 50 || len(c.Examples) != maxExamples || len(seen) != 4950 || !slices.IsSorted(seen) {
		t.Errorf("%d checked, %d rows, %d examples, %d seen", c.Checked, c.Rows, len(c.Examples), len(seen))
	}
	if report := found.report(); report.OK || len(report.Checks) != len(checks) {
		t.Errorf("%+v", report)
	}
}

// A row that disagrees once, and not when it is looked at again, is not told.
func TestARowIsLookedAtAgain(t *testing.T) {
	r, found := newReconciler(t), newFindings()
	looks := make(map[int]int)
	w := numbers(r, 100, func(_ context.Context, _ pgx.Tx, keys []int) (bad []wrong[int], err error) {
		for _, k := range keys {
			if looks[k]++; k == 7 && looks[k] == 1 || k == 8 {
				bad = append(bad, wrong[int]{k, CreditsAddUp, Disagreement{}})
			}
		}
		return bad, nil
	})
	if err := w.run(t.Context(), 0, found); err != nil {
		t.Fatal(err)
	}
	if found.of[CreditsAddUp].Rows != 1 || looks[7] != 2 || looks[8] != 2 || looks[9] != 1 {
		t.Errorf("%d rows; looked at %v", found.of[CreditsAddUp].Rows, looks)
	}
}

// A page whose look takes too long is looked at in parts, and no transaction is open for longer
// than half a second. A row that always takes too long ends the run.
func TestASlowPageIsParted(t *testing.T) {
	r, found := quickReconciler(t), newFindings()
	most := 0 // rows that a look was done with
	slow := func(ctx context.Context, tx pgx.Tx, keys []int) ([]wrong[int], error) {
		_, err := tx.Exec(ctx, "SELECT pg_sleep($1)", float64(len(keys))*0.03)
		if err == nil {
			most = max(most, len(keys))
		}
		return nil, err
	}
	w := numbers(r, 60, slow)
	if err := w.run(t.Context(), 0, found); err != nil {
		t.Fatal(err)
	}
	if found.of[CreditsAddUp].Checked != 60 || most > 16 { // 16 sleep for 480 ms
		t.Errorf("%d checked; a statement looked at %d rows", found.of[CreditsAddUp].Checked, most)
	}
	w = numbers(r, 1, func(ctx context.Context, tx pgx.Tx, _ []int) ([]wrong[int], error) {
		_, err := tx.Exec(ctx, "SELECT pg_sleep(30)")
		return nil, err
	})
	if err := w.run(t.Context(), 0, found); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a row that takes too long: %v", err)
	}
}

// A run only reads, and each statement has a bound.
func TestASnapshotOnlyReads(t *testing.T) {
	r := quickReconciler(t)
	err := r.snapshot(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		var timeout, isolation string
		if err := tx.QueryRow(ctx, "SELECT current_setting('statement_timeout'), current_setting('transaction_isolation')").Scan(&timeout, &isolation); err != nil {
			return err
		}
		if timeout != "400ms" || isolation != "repeatable read" {
			t.Errorf("%s, %s", timeout, isolation)
		}
		_, err := tx.Exec(ctx, "UPDATE sellers SET next_number = 2")
		return err
	})
	if err == nil {
		t.Error("a snapshot wrote")
	}
}

// One run at a time, and none for longer than it may take.
func TestOneRunAtATime(t *testing.T) {
	r := newReconciler(t)
	r.running <- struct{}{}
	if _, err := r.Run(t.Context()); !errors.Is(err, billing.ErrReconciling) {
		t.Errorf("a second run: %v", err)
	}
	<-r.running
	report, err := r.Run(t.Context())
	if err != nil || !report.OK || len(report.Checks) != len(checks) {
		t.Errorf("%+v, %v", report, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := r.Run(ctx); !errors.Is(err, billing.ErrReconcileTime) {
		t.Errorf("without time: %v", err)
	}
}
