package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// outcomes sums the hits of an outcome that a node counts in its metrics.
func (n *testNode) outcomes(outcome string) (sum int64) {
	n.t.Helper()
	for _, m := range regexp.MustCompile(`quotad_hits_total\{outcome="`+outcome+`"\} (\d+)`).FindAllSubmatch(n.do("GET", "/metrics", "").is(200).raw, -1) {
		count, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil {
			n.t.Fatal(err)
		}
		sum += count
	}
	return sum
}

// TestOverviewOfAllNodes: whichever node is asked tells of all nodes, and the numbers are those that
// the nodes' metrics and the customer's own endpoints say. What a node decided last is told when it
// stops.
func TestOverviewOfAllNodes(t *testing.T) {
	t.Parallel()
	one := start(t, "")
	two := start(t, one.databaseURL)
	one.setUp(fixed("l", 50))
	counts := func() (admitted, refused int64) {
		return one.outcomes("allowed") + two.outcomes("allowed"), one.outcomes("refused(?:_from_memory)?") + two.outcomes("refused(?:_from_memory)?")
	}
	for i := range 60 {
		n := []*testNode{one, two}[i%2]
		if got := n.hit(1).status; got != 200 && got != 429 {
			t.Fatalf("status %d", got)
		}
	}
	admitted, refused := counts()
	if admitted != 50 || refused != 10 {
		t.Fatalf("the metrics say %d and %d", admitted, refused)
	}
	var a *answer
	tells := func(n *testNode, nodes int) bool {
		a = n.do("GET", "/v1/overview", "").is(200)
		return len(a.at("nodes").([]any)) == nodes && a.num("decisions.hour.admitted") == admitted && a.num("decisions.hour.refused") == refused
	}
	for _, n := range []*testNode{one, two} {
		testkit.Eventually(t, "an overview of both nodes", func() bool { return tells(n, 2) })
		for i := range 2 {
			a.has(fmt.Sprintf("nodes.%d.state", i), "ready").has(fmt.Sprintf("nodes.%d.version", i), version)
		}
	}
	if used := one.do("GET", "/v1/customers/acme/quota", "").num("limits.0.used"); used != 50 {
		t.Errorf("the quota says %d", used)
	}
	testkit.Eventually(t, "the fullest customer", func() bool {
		a = one.do("GET", "/v1/overview", "").is(200)
		return strings.Contains(string(a.raw), `"used":50`)
	})
	a.has("fullest.items.0.customer", "acme").has("fullest.items.0.limit", "l").has("fullest.items.0.of", 50).has("fullest.items.0.percent", 100)
	var units int64
	testkit.Eventually(t, "the refusals", func() bool {
		periods := one.do("GET", "/v1/customers/acme/refusals", "").is(200)
		units = 0
		for i := range periods.at("items").([]any) {
			units += periods.num(fmt.Sprintf("items.%d.units", i))
		}
		return units == refused
	})
	if two.hit(1).status != 429 || two.hit(0).status != 200 {
		t.Error("the limit is not used up")
	}
	refused++
	two.do("GET", "/v1/reconcile", "").is(200).has("ok", true)
	if err := two.stop(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "an overview of one node", func() bool { return tells(one, 1) })
}

// TestOverviewPage: the page says what the API says, to whom it may, and stands when a part fails.
func TestOverviewPage(t *testing.T) {
	t.Parallel()
	n := start(t, "", "--close-delay=1h")
	n.setUp(fixed("l", 5))
	n.hit(4).is(200)
	n.hit(2).is(429)
	b := n.signedIn(testAdminKey)
	_, support := n.newKey("support")
	desk := n.signedIn(support)
	shows := func(b *browser, words ...string) *reply {
		t.Helper()
		var page *reply
		testkit.Eventually(t, "the page says "+strings.Join(words, ", "), func() bool {
			page = b.get("/admin").is(200)
			for _, w := range words {
				if !strings.Contains(page.text, w) {
					return false
				}
			}
			return true
		})
		return page
	}
	shows(b, "All is well.", "decisions a second on 1 node.", ">50.0 %<", "Fullest customers", `href="/admin/customers/acme"`, "80 %", ">of 5<",
		"PostgreSQL ", "All changes", `href="/admin/reconcile"`, "Last changes").
		lacks("could not be read", "<script>alert")
	shows(desk, "All is well.", "80 %").lacks("Last changes", "/admin/reconcile")
	n.do("GET", "/v1/reconcile", "").is(200)
	shows(desk, ": they agree")

	for table, words := range map[string][]string{
		"nodes":     {"The nodes could not be read just now.", "in the last hour", "PostgreSQL ", "Last changes"},
		"decisions": {"Decisions could not be read just now.", "Refusals could not be read just now.", "80 %", "PostgreSQL "},
		"audit":     {"The changes could not be read just now.", "80 %", "in the last hour"},
	} {
		execSQL(t, n.databaseURL, "ALTER TABLE "+table+" RENAME TO hidden")
		shows(b, words...)
		execSQL(t, n.databaseURL, "ALTER TABLE hidden RENAME TO "+table)
	}
	execSQL(t, n.databaseURL, `INSERT INTO nodes (id, name, version, state, reason, started_at, seen_at)
		SELECT 'x', 'far<b>:80', 'v0', 'ready', '', 0, seen_at - 600000000 FROM nodes LIMIT 1`)
	shows(b, "One thing needs a look.", "far&lt;b&gt;:80 has not been heard of for 10 minutes", ">silent<")
}
