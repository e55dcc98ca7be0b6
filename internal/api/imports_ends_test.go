package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/imports"
	"quotad/internal/api/serve"
	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// With the database away an import stops, and says so; later it is sent again.
func TestImportsInAnOutage(t *testing.T) {
	t.Parallel()
	pg := pgtest.Server(t)
	n := newNodeOn(t, pg.URL())
	n.server.imports.Pause = time.Millisecond
	n.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":1000}`)
	var lines strings.Builder
	const all = 5 * imports.MaxGroup
	for i := range all {
		lines.WriteString(usageLine(fmt.Sprint(i), 1, "2026-01-31T12:00:00Z") + "\n")
	}
	n.imported(usageLine("0", 1, "2026-01-31T12:00:00Z"), 1, 0, 0)
	pg.Stop()
	got := n.want(200, "POST", "/v1/imports", lines.String(), "Content-Type", "application/x-ndjson")
	failed := int(got.json["failed"].(float64))
	n.counts(got, 0, 0, failed)
	if failed < imports.MaxOutages || failed > imports.MaxOutages*imports.MaxGroup || got.json["stopped"] == nil {
		t.Errorf("in an outage: %.1000s", got.text)
	}
	for _, e := range got.json["errors"].([]any) {
		if e := e.(map[string]any); e["status"] != 503.0 {
			t.Fatalf("in an outage: %v", e)
		}
	}
	pg.Start()
	// Who sends all of it again until nothing fails has all of it done, however long the database takes.
	imported, replayed := 0, 0
	testkit.Eventually(t, "nothing fails", func() bool {
		got = n.want(200, "POST", "/v1/imports", lines.String(), "Content-Type", "application/x-ndjson")
		imported, replayed = imported+int(got.json["imported"].(float64)), int(got.json["replayed"].(float64))
		return got.json["failed"] == 0.0
	})
	// An answer that was lost may have been of lines that were done.
	if got.json["lines"] != float64(all) || imported > all-1 || replayed == 0 {
		t.Errorf("after the outage: %d imported, in the end %.1000s", imported, got.text)
	}
	n.imported(lines.String(), 0, all, 0)
	n.standing("acme", all, 0)
}

// The pool's connections died less than a second after their last use, as in a restart of the
// server. The next quota is answered all the same.
func TestQuotaAfterARestart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	ctx := testkit.Context(t)
	other, err := postgres.Connect(ctx, n.database, map[string]string{"application_name": "other"})
	check(t, err)
	defer other.Close(ctx)
	for range 5 {
		n.want(200, "GET", "/v1/customers/acme/quota", "")
		_, err = other.Exec(ctx, `
			SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'quotad'`)
		check(t, err)
		n.want(200, "GET", "/v1/customers/acme/quota", "")
	}
}

// A node that stops ends its imports after a group.
func TestImportsOfAStoppingNode(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.state = serve.StateStopping
	body := strings.Repeat(usageLine("1", 1, "2026-01-31T12:00:00Z")+"\n", 3*imports.MaxGroup)
	got := n.want(200, "POST", "/v1/imports", body, "Content-Type", "application/x-ndjson")
	lines := int(got.json["lines"].(float64))
	n.counts(got, 1, lines-1, 0)
	if stopped, _ := got.json["stopped"].(string); lines > imports.MaxGroup || !strings.Contains(stopped, "this node is stopping") {
		t.Errorf("stopping: %s", got.text)
	}
}
