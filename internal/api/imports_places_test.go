package api

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/imports"
	"quotad/internal/quota/queue"
	"quotad/internal/testkit"
)

// Imports whose clients send nothing turn no other away, and have no place that others need. No
// more than MaxOpen are open, half of them of one key.
func TestManyImports(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":1000}`)
	other := n.key("admin")
	for range imports.MaxOwn {
		w, answered := n.stream("application/x-ndjson")
		_, err := io.WriteString(w, "\n")
		check(t, err)
		response := <-answered // it has begun
		t.Cleanup(func() {
			check(t, w.Close())
			text, err := io.ReadAll(response.Body)
			if err != nil || !strings.Contains(string(text), `"lines":0`) {
				t.Errorf("%s, %v", text, err)
			}
		})
		if taken, _ := n.server.imports.Open.Taken(); taken == imports.MaxGroups { // others are not held up by as many as have places
			n.imported(usageLine("0", 1, "2026-01-31T12:00:00Z"), 1, 0, 0)
		}
	}
	if free := freeOf(n.server.imports.Groups); free != imports.MaxGroups {
		t.Errorf("%d of %d places are free", free, imports.MaxGroups)
	}
	tooMany := func(what, detail string, got reply) {
		t.Helper()
		if got.json["type"] != "/problems/too-busy" || got.header.Get("Retry-After") != "1" || !strings.Contains(got.text, detail) {
			t.Errorf("%s: %s", what, got.text)
		}
	}
	send := func(status int, key string) reply {
		t.Helper()
		return n.want(status, "POST", "/v1/imports", "", "Content-Type", "application/x-ndjson", "Authorization", key)
	}
	tooMany("one more of the key", "32 imports of this API key", send(503, "Bearer "+adminSecret))
	send(200, other)
	for i := range imports.MaxOpen - imports.MaxOwn {
		check(t, n.server.imports.Open.Take(queue.SenderID(fmt.Sprint(i))))
	}
	tooMany("one more of another key", "64 imports", send(503, other))
}

// While others have all places for groups of lines, an import waits, and then says which of its
// lines were not done.
func TestImportsWaitForAPlace(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":1000}`)
	n.server.imports.Wait, n.server.imports.Pause = 10*time.Second, time.Millisecond // for its body and its answer, too
	takeAll(n.server.imports.Groups)
	line := usageLine("0", 1, "2026-01-31T12:00:00Z")
	got := n.want(200, "POST", "/v1/imports", line, "Content-Type", "application/x-ndjson")
	n.counts(got, 0, 0, 1)
	if e := got.json["errors"].([]any)[0].(map[string]any); e["status"] != 503.0 || e["type"] != "/problems/too-busy" {
		t.Errorf("without a place: %v", e)
	}
	n.server.imports.Groups.GiveBack()
	n.server.imports.Wait = testkit.Patience
	n.imported(line, 1, 0, 0)
	n.standing("acme", 1, 0)
}
