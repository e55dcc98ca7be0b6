package quota

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
)

// TestTracesSQL: after every step of random traces the statements and the model agree on
// decisions, views, rows and usage.
func TestTracesSQL(t *testing.T) { tracesSQL(t, 0, quotatest.Sized(2, 3, 3)) }

// TestMoreTracesSQL runs the rounds that TestTracesSQL leaves out.
func TestMoreTracesSQL(t *testing.T) { tracesSQL(t, 3, 8) }

// tracesSQL runs the rounds from first up to end.
func tracesSQL(t *testing.T, first, end int) {
	t.Helper()
	t.Parallel() // it has a database of its own, and asks nothing of the machine's speed
	b, ctx := newBench(t), testkit.Context(t)
	for i := first; i < end; i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				ofRound(rt, i)
				tr := drawTrace(rt, true, 12)
				if err := b.run(ctx, tr); err != nil {
					rt.Fatalf("%v; the trace is in %s", err, tr.keep(t, err))
				}
			})
		})
	}
	t.Logf("%d batches, %d steps with several, %d refusals from memory, %d looks, %d stale", b.batches, b.handed, b.memories, b.looks, b.stale)
	if b.handed == 0 || b.memories == 0 || b.looks == 0 || b.stale == 0 {
		t.Error("the traces missed something")
	}
	t.Log(b.seen)
	if testing.Short() {
		return
	}
	for _, branch := range allBranches {
		if b.seen[branch+" admitted"] == 0 || b.seen[branch+" never"] == 0 || b.seen[branch+" waits"] == 0 && branch != "allocation" {
			t.Errorf("no %s was charged twice, refused for a while and for good", branch)
		}
		for _, mode := range []model.Mode{model.Soft, model.Shadow} {
			if b.seen[fmt.Sprintf("%s %s exceeded true", branch, mode)] == 0 || b.seen[fmt.Sprintf("%s %s exceeded false", branch, mode)] == 0 {
				t.Errorf("no %s %s was exceeded, or none was not", mode, branch)
			}
		}
	}
}

// TestTracesAgain runs the traces that failed before: those kept for good in
// testdata/traces, and what testdata/failed holds.
func TestTracesAgain(t *testing.T) {
	b, ctx := newBench(t), testkit.Context(t)
	var files []string
	for _, dir := range []string{"testdata/traces", failedDir} {
		found, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatal("there are no traces in testdata")
	}
	for _, path := range files {
		t.Run(strings.TrimPrefix(path, "testdata/"), func(t *testing.T) {
			tr, err := readTrace(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.runModel(); err != nil {
				t.Error(err)
			}
			if err := b.run(ctx, tr); err != nil {
				t.Error(err)
			}
		})
	}
}
