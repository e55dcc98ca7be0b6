package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const ofPreview = "/v1/customers/acme/preview"

// foreseeing previews a change, and sums up the answer: at, the invoice's lines, the upcoming one's, and
// the first limit.
func (n *node) foreseeing(body string) string {
	n.t.Helper()
	got := n.want(200, "POST", ofPreview, body)
	lines := func(what string) string {
		invoice, ok := got.json[what].(map[string]any)
		if !ok {
			return "none"
		}
		if invoice["id"] != nil {
			n.t.Errorf("%s has an id: %s", what, got.text)
		}
		all := []string{}
		for _, l := range invoice["lines"].([]any) {
			line := l.(map[string]any)
			all = append(all, fmt.Sprint(line["kind"], " ", line["amount_minor"]))
		}
		return fmt.Sprint(invoice["status"], " ", strings.Join(all, ", "))
	}
	limit := got.json["limits"].([]any)[0].(map[string]any)
	return fmt.Sprint(got.json["at"], "; ", lines("invoice"), "; ", lines("upcoming"), "; ", limit["used"], " of ", limit["limit"])
}

// snapshot is all that a preview could leave something in.
func (n *node) snapshot(url string) (all string) {
	n.t.Helper()
	for _, table := range []string{
		"customers", "customer_terms", "billing_accounts", "open_periods", "periods", "invoices", "invoice_lines",
		"counters", "usage", "changes", "change_number", "audit", "credits", "charges", "sellers", "limit_rates",
	} {
		all += pgtest.Query[string](n.t, url,
			`SELECT '`+table+` ' || count(*) || ' ' || coalesce(md5(string_agg(t::text, '' ORDER BY t::text)), '') FROM `+table+` t`) + "\n"
	}
	return all
}

// What each change would make on January 10 of a month that costs 10.00 in advance, of which 7 calls were
// used for a cent each. Nothing of it is left.
func TestPreviews(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := scheduledNode(t, url)
	n.joins("small")
	n.call(200, 7, 10)
	n.billed("2026-01-10T02:00:00Z", "finalized") // the opening
	was := n.snapshot(url)
	for body, want := range map[string]string{
		`{"plan":"large","change":"now"}`:         "2026-01-10T02:00:00Z; draft usage 7, unused -707, base 3535; draft usage 0, base 5000; 7 of 100",
		`{"plan":"large","change":"limits_now"}`:  "2026-01-10T02:00:00Z; none; draft usage 7, base 5000; 7 of 100",
		`{"plan":"large","change":"period_end"}`:  "2026-02-01T00:00:00Z; draft usage 7, base 5000; draft usage 0, base 5000; 7 of 100",
		`{"plan":"yearly","change":"base_end"}`:   "2026-02-01T00:00:00Z; draft usage 7, base 12000; draft usage 0; 7 of 10",
		`{"plan":"yearly","change":"now"}`:        "2026-01-10T02:00:00Z; draft usage 7, unused -707, base 11701; draft usage 0; 7 of 10",
		`{"plan":"small","change":"now"}`:         "2026-01-10T02:00:00Z; none; draft usage 7, base 1000; 7 of 10",
		`{"plan":"small"}`:                        "2026-01-10T02:00:00Z; none; draft usage 7, base 1000; 7 of 10",
		`{"plan":"free","change":"period_end"}`:   "2026-02-01T00:00:00Z; draft usage 7; draft usage 0; 7 of 100",
		`{"ends_at":"period_end"}`:                "2026-02-01T00:00:00Z; draft usage 7; none; 7 of 10",
		`{"ends_at":"base_end"}`:                  "2026-02-01T00:00:00Z; draft usage 7; none; 7 of 10",
		`{"ends_at":"2026-01-10T02:00:00Z"}`:      "2026-01-10T02:00:00Z; draft usage 7, unused -707; none; 7 of 10",
		`{"ends_at":"2026-01-20T00:00:00Z"}`:      "2026-01-20T00:00:00Z; draft usage 7, unused -387; none; 7 of 10",
		`{"plan":"weekly","change":"period_end"}`: "2026-02-01T00:00:00Z; draft usage 7, base 400; draft usage 0, base 700; 7 of 100",
	} {
		if got := n.foreseeing(body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for body, want := range map[string]string{
		`{}`: "422 plan", `{"plan":"none"}`: "422 plan", `{"plan":"large"}`: "422 change", `{"plan":"large","change":"then"}`: "422 change",
		`{"plan":"large","plan_version":9,"change":"now"}`: "422 plan_version", `{"plan":"large","ends_at":"period_end"}`: "422 ends_at",
		`{"ends_at":"period_end","change":"now"}`: "422 ends_at", `{"ends_at":"tomorrow"}`: "422 ends_at", `{"ends_at":null}`: "422 plan",
		`{"plan":"euro","change":"now"}`: "409", `{"plan":"euro","change":"period_end"}`: "409", `{"ends_at":"2025-01-01T00:00:00Z"}`: "409",
		`{"ends_at":"2036-01-01T00:00:00Z"}`: "409", `{"plan":""}`: "422 plan", `{"plan":"large","change":"now","x":1}`: "422 x",
	} {
		got := n.do("POST", ofPreview, body)
		said := strings.Fields(want)
		if fmt.Sprint(got.status) != said[0] || len(said) > 1 && !strings.Contains(got.text, `"field":"`+said[1]+`"`) {
			t.Errorf("%s: %d %s, want %s", body, got.status, got.text, want)
		}
	}
	if is := n.snapshot(url); is != was {
		t.Errorf("something is left:\n%s\nthere was\n%s", is, was)
	}
	n.want(404, "POST", "/v1/customers/nobody/preview", `{"plan":"large","change":"now"}`)
	n.want(204, "DELETE", "/v1/customers/acme", "")
	n.want(409, "POST", ofPreview, `{"plan":"large","change":"now"}`)
}

// Previews run beside hits of the same and of another customer, in real time on two nodes, and beside
// writes of admins. No hit is lost or counted twice, and nothing fails.
func TestPreviewsBesideHits(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	n := scheduledNode(t, url)
	nodes := []*node{n, newNodeOn(t, url)}
	for _, key := range []string{"acme", "other"} {
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"C","plan":"large","billing_anchor":"2026-01-01T00:00:00"}`)
	}
	stop, hits := make(chan struct{}), [2]int{}
	var callers sync.WaitGroup
	for caller, key := range []string{"acme", "other"} {
		callers.Go(func() {
			for ; ; hits[caller]++ {
				select {
				case <-stop:
					return
				default:
				}
				if got := nodes[caller].do("POST", "/v1/hits", `{"customer":"`+key+`","meter":"calls","overrun":true}`); got.status != 200 {
					t.Errorf("hit: %d %s", got.status, got.text)
				}
			}
		})
	}
	worst := time.Duration(0)
	for i := range 12 {
		began := time.Now()
		nodes[i%2].want(200, "POST", ofPreview, []string{
			`{"plan":"small","change":"now"}`, `{"plan":"small","change":"period_end"}`,
			`{"ends_at":"period_end"}`,
		}[i%3])
		worst = max(worst, time.Since(began))
		nodes[i%2].do("PUT", "/v1/customers/acme/overrides/day", fmt.Sprintf(`{"limit":%d}`, 1000+i))
	}
	close(stop)
	callers.Wait()
	for caller, key := range []string{"acme", "other"} {
		for _, m := range n.want(200, "GET", "/v1/customers/"+key+"/quota", "").json["meters"].([]any) {
			if used := m.(map[string]any)["used"]; used != float64(hits[caller]) {
				t.Errorf("%s: %v used after %d hits", key, used, hits[caller])
			}
		}
	}
	t.Logf("%d hits; the slowest preview took %s", hits, worst)
	if got := n.want(200, "GET", "/v1/reconcile", ""); got.json["ok"] != true {
		t.Error(got.text)
	}
}

// A preview spends each credit once, and what its invoice gives back pays the upcoming one: all are due what came when nothing else
// happened. The draft of the month before takes its credits first, and so do drafts that wait for their seller's name: none that
// comes later is finalized before them.
func TestPreviewsOfCredits(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	n.want(201, "PUT", "/v1/plans/dear", `{"name":"P","currency":"USD","interval":"month","base_price_minor":65000,"base_in":"advance","base_every":12}`)
	foreseen := make(map[string]string)
	due := func(i any) string {
		invoice := i.(map[string]any)
		return fmt.Sprint(invoice["period_end"], ": ", invoice["credits_minor"], ", ", invoice["amount_due_minor"], "; ")
	}
	n.want(201, "PUT", "/v1/sellers/later", `{"name":"Later","prefix":"L-"}`)
	n.exec(`UPDATE sellers SET name = '' WHERE key = 'later'`)
	for customer, plan := range map[string]string{"credited": "small", "year": "dear", "waiting": "small"} {
		n.want(201, "PUT", "/v1/customers/"+customer, `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
		n.bill(200, customer, `{"buyer":{"name":"B"},"seller":"`+map[bool]string{true: "later", false: "default"}[customer == "waiting"]+
			`","taxes":[{"name":"VAT","percent":"21"}]}`)
	}
	n.settled("2026-02-27T00:00:00Z")
	n.want(201, "POST", "/v1/customers/credited/credits", `{"amount_minor":1777,"currency":"USD","kind":"promotional","id":"k"}`)
	n.want(201, "POST", "/v1/customers/waiting/credits", `{"amount_minor":4000,"currency":"USD","kind":"promotional","id":"w"}`)
	n.settled("2026-03-01T00:30:00Z")
	for customer, to := range map[string]string{"credited": "large", "year": "small", "waiting": "large"} {
		got := n.want(200, "POST", "/v1/customers/"+customer+"/preview", `{"plan":"`+to+`","change":"now"}`)
		foreseen[customer] = due(got.json["invoice"]) + due(got.json["upcoming"])
		tag := n.want(200, "GET", "/v1/customers/"+customer, "").header.Get("ETag")
		n.want(200, "PUT", "/v1/customers/"+customer, `{"name":"C","plan":"`+to+`","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock","change":"now"}`,
			"If-Match", tag)
	}
	n.settled("2026-04-02T00:00:00Z")
	n.want(200, "PUT", "/v1/sellers/later", `{"name":"Later","prefix":"L-"}`, "If-Match", "*")
	testkit.Eventually(t, "the invoices that waited are finalized", func() bool {
		return len(n.want(200, "GET", "/v1/invoices?test_clock=any&status=draft", "").items()) == 0
	})
	for customer, was := range foreseen {
		came := ""
		for _, i := range n.want(200, "GET", "/v1/customers/"+customer+"/invoices", "").json["items"].([]any) {
			if end := i.(map[string]any)["period_end"].(string); end > "2026-03-01T00:00:00Z" && end <= "2026-04-01T00:00:00Z" {
				came += due(i)
			}
		}
		if came != was {
			t.Errorf("%s: foreseen was %s there is %s", customer, was, came)
		}
	}
}
