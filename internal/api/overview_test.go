package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/plans"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// An overviewed node's wall clock goes ahead, so that it reads each overview again.
type overviewed struct {
	*node
	ahead atomic.Int64
}

func overviewNode(t *testing.T) *overviewed {
	n := &overviewed{node: newNode(t)}
	n.server.Wall = func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }
	return n
}

// beat tells of a node as quotad does, and of what this one has decided.
func (n *node) beat(of plans.Node, minute int64) {
	n.t.Helper()
	s := n.server.Engine.Stats()
	check(n.t, n.store.Beat(testkit.Context(n.t), &of, minute, plans.Decided{Admitted: s.Admitted, Refused: s.Refused}))
}

func (n *overviewed) overview() map[string]any {
	n.t.Helper()
	n.ahead.Add(int64(time.Hour))
	return n.want(200, "GET", "/v1/overview", "").json
}

// fullest is the list of the fullest customers as one line each.
func fullest(overview map[string]any) (all []string) {
	for _, item := range overview["fullest"].(map[string]any)["items"].([]any) {
		f := item.(map[string]any)
		all = append(all, fmt.Sprintf("%v %v %v %v %.0f/%.0f %.0f%%", f["customer"], f["name"], f["meter"], f["limit"], f["used"], f["of"], f["percent"]))
	}
	return all
}

// The numbers of the overview are those of the other endpoints.
func TestOverview(t *testing.T) {
	t.Parallel()
	n := overviewNode(t)
	n.setUp(hourly + `,{"name":"daily","meter":"requests","algorithm":"token_bucket","limit":100,"burst":40,"window":"1d"}`)
	empty := n.overview()
	if got := fullest(empty); len(got) != 0 || len(empty["nodes"].([]any)) != 0 || empty["decisions"].(map[string]any)["per_second"] != "0.0" {
		t.Errorf("%v", empty)
	}
	n.want(201, "PUT", "/v1/meters/seats", `{"unit":"seat"}`)
	n.want(201, "PUT", "/v1/plans/seats", `{"name":"S","currency":"USD","interval":"month","limits":[
		{"name":"seats","meter":"seats","algorithm":"allocation","limit":1000},{"name":"soft","meter":"requests","algorithm":"fixed_window","limit":4,"window":"1h","mode":"soft"}]}`)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2030-01-01T00:00:30Z"}`)
	for key, more := range map[string]string{
		"beta": `"plan":"seats"`, "over": `"plan":"seats"`, "timed": `"plan":"pro","test_clock":"clock"`,
		"gone": `"plan":"pro"`, "idle": `"plan":"pro"`,
	} {
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"N `+key+`",`+more+`}`)
	}
	hit := func(status int, customer, meter string, cost int) {
		t.Helper()
		n.want(status, "POST", "/v1/hits", fmt.Sprintf(`{"customer":%q,"meter":%q,"cost":%d}`, customer, meter, cost))
	}
	hit(200, "acme", "requests", 4)
	for range 3 {
		hit(429, "acme", "requests", 2)
	}
	hit(200, "beta", "seats", 999)
	hit(200, "over", "requests", 9)
	hit(200, "timed", "requests", 5)
	hit(200, "gone", "requests", 5)
	n.want(204, "DELETE", "/v1/customers/gone", "")

	now, err := n.server.Now(testkit.Context(t))
	check(t, err)
	minute := now - now%60e6
	n.beat(plans.Node{ID: "1", Name: "web-1:80", Version: "v1", State: "ready", StartedAt: now, SeenAt: now}, minute)
	got := n.overview()
	want := []string{"over N over requests soft 9/4 225%", "beta N beta seats seats 999/1000 99%", "acme Acme requests hourly 4/5 80%"}
	if slices.Compare(fullest(got), want) != 0 {
		t.Errorf("%q, want %q", fullest(got), want)
	}
	f := got["fullest"].(map[string]any)
	if f["complete"] != true || f["counters"] != 5. || f["judged"] != 4. { // those of the test clock are ahead
		t.Errorf("%v", f)
	}
	quota := n.want(200, "GET", "/v1/customers/acme/quota", "").limits()["hourly"]
	if quota["used"] != 4. || quota["limit"] != 5. {
		t.Errorf("the quota says %v", quota)
	}
	decisions := got["decisions"].(map[string]any)
	for _, window := range []string{"recent", "hour", "day"} {
		if d := decisions[window].(map[string]any); d["admitted"] != 5. || d["refused"] != 3. {
			t.Errorf("%s: %v", window, d)
		}
	}
	metrics := n.want(200, "GET", "/metrics", "").text
	if !strings.Contains(metrics, `quotad_hits_total{outcome="allowed"} 5`) {
		t.Errorf("%s", metrics)
	}
	var units float64
	testkit.Eventually(t, "the refusals of acme", func() bool {
		units = 0
		for _, s := range n.want(200, "GET", "/v1/customers/acme/refusals", "").items() {
			units += s["units"].(float64)
		}
		return units == 6
	})
	seconds := decisions["seconds"].(float64)
	if from := time.UnixMicro(minute).Add(-time.Minute).UTC().Format(time.RFC3339); decisions["recent"].(map[string]any)["from"] != from ||
		seconds < 60 || seconds > 120 {
		t.Errorf("%v, want it from %s", decisions, from)
	}
	if want := fmt.Sprintf("%d.%d", 8/int(seconds), 80/int(seconds)%10); decisions["per_second"] != want ||
		got["nodes"].([]any)[0].(map[string]any)["per_second"] != want {
		t.Errorf("%v a second, want %s", decisions["per_second"], want)
	}
	database := got["database"].(map[string]any)
	if version := pgtest.Query[string](t, n.database, "SELECT version()"); !strings.Contains(version, database["version"].(string)) ||
		database["connections"].(float64) < 1 || database["read_only"] != false {
		t.Errorf("%v of %s", database, version)
	}
	if len(got["concerns"].([]any)) != 0 || len(got["failed"].([]any)) != 0 {
		t.Errorf("%v %v", got["concerns"], got["failed"])
	}
}

// Where there are too many counters to look at all, those that were found before are judged again.
func TestOverviewOfMany(t *testing.T) {
	t.Parallel()
	n := overviewNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":4}`)
	want := []string{"acme Acme requests hourly 4/5 80%"}
	if got := fullest(n.overview()); slices.Compare(got, want) != 0 {
		t.Errorf("%q, want %q", got, want)
	}
	// These come before the counter in its shard, so that a search does not come to it.
	n.exec(`INSERT INTO counters (shard, customer, meter, attribute) SELECT shard, 0, 1, 'ip=' || i FROM counters, generate_series(1, 1000) i`)
	got := n.overview()
	if f := got["fullest"].(map[string]any); slices.Compare(fullest(got), want) != 0 || f["complete"] != false || f["counters"] != 0. || f["judged"] != 1. {
		t.Errorf("%v", f)
	}
	parts := n.server.Options
	parts.Registry = prometheus.NewRegistry()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/overview", nil)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	w := httptest.NewRecorder()
	New(Options{Options: parts}).Handler().ServeHTTP(w, r) // it has searched nothing before
	var other map[string]any
	check(t, json.Unmarshal(w.Body.Bytes(), &other))
	if got := fullest(other); len(got) != 0 {
		t.Errorf("%q was found, so this test shows nothing", got)
	}
}

// What several nodes decided adds up, by minutes; a node that is not heard of any more is told.
func TestOverviewOfNodes(t *testing.T) {
	t.Parallel()
	n := overviewNode(t)
	now, err := n.server.Now(testkit.Context(t))
	check(t, err)
	const minute, hour = int64(60e6), int64(3600e6)
	this := now - now%minute
	told := func(node plans.Node, of, admitted, refused int64) {
		t.Helper()
		check(t, n.store.Beat(testkit.Context(t), &node, of, plans.Decided{Admitted: admitted, Refused: refused}))
	}
	one := plans.Node{ID: "1", Name: "one:80", Version: "v1", State: "ready", StartedAt: now - hour, SeenAt: now}
	two := plans.Node{ID: "2", Name: "two:80", Version: "v1", State: "degraded", Reason: "the database is too slow", StartedAt: now - hour, SeenAt: now}
	gone := plans.Node{ID: "3", Name: "gone:80", Version: "v1", State: "ready", StartedAt: now - hour, SeenAt: now - 3*minute}
	told(gone, this-3*minute, 1, 2)
	told(one, this, 10, 20)
	told(one, this-minute, 100, 200)
	told(two, this-2*minute, 1000, 2000)
	told(two, this-hour-minute, 1e4, 2e4)
	told(two, this-24*hour-minute, 1e5, 2e5)
	got := n.overview()
	for window, want := range map[string][2]float64{"recent": {110, 220}, "hour": {1111, 2222}, "day": {11111, 22222}} {
		if d := got["decisions"].(map[string]any)[window].(map[string]any); d["admitted"] != want[0] || d["refused"] != want[1] {
			t.Errorf("%s: %v, want %v", window, d, want)
		}
	}
	var states []string
	for _, item := range got["nodes"].([]any) {
		m := item.(map[string]any)
		states = append(states, fmt.Sprint(m["name"], " ", m["state"], " ", m["reason"]))
	}
	if strings.Join(states, ", ") != "gone:80 silent <nil>, one:80 ready <nil>, two:80 degraded the database is too slow" {
		t.Errorf("%q", states)
	}
	if said := fmt.Sprint(got["concerns"]); !strings.Contains(said, "gone:80 has not been heard of for 3 minutes") ||
		!strings.Contains(said, "two:80 is degraded: the database is too slow") || len(got["concerns"].([]any)) != 2 {
		t.Errorf("%s", said)
	}

	// The newest check of the books counts, on whichever node it was.
	old, late := now-hour, now-minute
	one.CheckedAt, one.Disagreeing = &old, []string{"credits_add_up"}
	told(one, this, 10, 20)
	if got := n.overview(); !strings.Contains(fmt.Sprint(got["concerns"]), "credits_add_up") {
		t.Errorf("%v", got["concerns"])
	}
	two.CheckedAt, two.State = &late, "ready"
	told(two, this, 10, 20)
	if books := n.overview()["books"].(map[string]any); books["checked_at"] == nil || len(books["disagreeing"].([]any)) != 0 {
		t.Errorf("%v", books)
	}
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.exec(`UPDATE counters SET total = total + 1`)
	n.want(200, "GET", "/v1/reconcile", "")
	if books := n.overview()["books"].(map[string]any); fmt.Sprint(books["disagreeing"]) != "[charged_is_booked]" {
		t.Errorf("%v", books)
	}
}

// A part that fails is left out and named; the others stand.
func TestOverviewStandsWithoutAPart(t *testing.T) {
	t.Parallel()
	n := overviewNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	for table, failed := range map[string][]string{"nodes": {"nodes"}, "decisions": {"decisions"}, "counters": {"fullest"}} {
		n.exec("ALTER TABLE " + table + " RENAME TO hidden")
		got := n.overview()
		if fmt.Sprint(got["failed"]) != fmt.Sprint(failed) {
			t.Errorf("without %s failed %v", table, got["failed"])
		}
		for _, part := range []string{"nodes", "decisions", "fullest", "database", "books"} {
			if _, there := got[part]; there == slices.Contains(failed, part) {
				t.Errorf("without %s: the part %s is there: %v", table, part, there)
			}
		}
		n.exec("ALTER TABLE hidden RENAME TO " + table)
	}
	if got := n.overview(); len(got["failed"].([]any)) != 0 {
		t.Errorf("%v", got["failed"])
	}
}

// Many who ask at once make a node read once.
func TestOverviewIsKept(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	now := time.Now()
	var ahead atomic.Int64
	n.server.Wall = func() time.Time { return now.Add(time.Duration(ahead.Load())) }
	first := n.want(200, "GET", "/v1/overview", "").text
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	done := make(chan string)
	for range 20 {
		go func() { done <- n.do("GET", "/v1/overview", "").text }()
	}
	for range 20 {
		if got := <-done; got != first {
			t.Errorf("it was read again: %s", got)
		}
	}
	ahead.Add(int64(time.Hour))
	if got := n.want(200, "GET", "/v1/overview", "").text; got == first {
		t.Error("it is never read again")
	}
}
