package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"quotad/internal/events"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// told are the events that a query asks for, as lines: type, at, and what data says. Ids of invoices are
// left out.
func (n *node) told(query string) (lines []string) {
	n.t.Helper()
	for _, e := range n.want(200, "GET", "/v1/events"+query, "").items() {
		data := e["data"].(map[string]any)
		var says []string
		for _, name := range slices.Sorted(maps.Keys(data)) {
			switch value := data[name].(type) {
			case map[string]any:
				says = append(says, name+"="+fmt.Sprint(value["plan"], value["plan_version"], value["number"], value["total_minor"]))
			case string:
				if name != "id" || !strings.Contains(value, "-") {
					says = append(says, name+"="+value)
				}
			default:
				says = append(says, fmt.Sprintf("%s=%v", name, value))
			}
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", e["type"], strings.TrimSuffix(e["at"].(string), "Z"), strings.Join(says, " "))))
	}
	return lines
}

// tells waits until the events that a query asks for are these, and no others.
func (n *node) tells(query string, want ...string) {
	n.t.Helper()
	testkit.Eventually(n.t, "events to be shown", func() bool {
		var waiting int
		check(n.t, n.store.Pool().QueryRow(n.t.Context(), "SELECT count(*) FROM outbox").Scan(&waiting))
		return waiting == 0
	})
	if got := n.told(query); !slices.Equal(got, want) {
		n.t.Errorf("%s tells\n%s\nand not\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A customer's life by a test clock: each thing that happens to it is told once, at what its clock
// showed, and nothing is told of what was refused, rolled back, repeated or is as it was.
func TestEventsOfALife(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	const acme, pay = "/v1/customers/acme", `{"reference":"a transfer"}`
	on := func(plan, change string) {
		t.Helper()
		tag := n.want(200, "GET", acme, "").header.Get("ETag")
		n.want(200, "PUT", acme, `{"name":"C","plan":"`+plan+`","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"`+change+`}`, "If-Match", tag)
	}
	n.made("acme")
	on("pro", "")
	on("max", `,"change":"limits_now"`)
	n.setTo("2026-01-02T00:00:00Z")
	n.want(422, "PUT", acme+"/suspension", `{"reason":""}`)
	n.want(200, "PUT", acme+"/suspension", `{"reason":"Ada did not pay"}`)
	n.want(200, "PUT", acme+"/suspension", `{"reason":"Ada still did not"}`)
	n.want(204, "DELETE", acme+"/suspension", "")
	n.want(404, "DELETE", acme+"/suspension", "")
	n.setTo("2026-01-03T00:00:00Z")
	n.scheduled(201, `{"plan":"max"}`)
	n.scheduled(200, `{"plan":"pro"}`)
	n.want(204, "DELETE", ofScheduled, "")
	n.scheduled(201, `{"plan":"max"}`)
	on("pro", `,"change":"limits_now"`)
	n.setTo("2026-01-04T00:00:00Z")
	n.scheduled(201, `{"plan":"max"}`)
	n.want(422, "POST", acme+"/credits", `{"amount_minor":300,"currency":"EUR","id":"welcome"}`)
	n.want(201, "POST", acme+"/credits", `{"amount_minor":300,"currency":"USD","id":"welcome","expires_at":"2026-01-20T00:00:00Z"}`)
	n.want(200, "POST", acme+"/credits", `{"amount_minor":300,"currency":"USD","id":"welcome","expires_at":"2026-01-20T00:00:00Z"}`)
	n.settled("2026-01-20T00:00:00Z") // the credit's expiry is booked
	n.setTo("2026-02-01T00:00:00Z")
	n.on("max", "") // it counts, and whoever asks has it written
	n.settled("2026-02-02T00:00:00Z")
	first := n.want(200, "GET", acme+"/invoices", "").items()[0]["id"].(string)
	n.want(200, "POST", "/v1/invoices/"+first+"/pay", pay)
	n.want(409, "POST", "/v1/invoices/"+first+"/pay", pay)
	n.setTo("2026-02-03T00:00:00Z")
	for _, status := range []int{201, 200} {
		n.want(status, "POST", "/v1/invoices/"+first+"/credit-notes", `{"lines":[{"n":1,"amount_minor":150}],"reason":"Ada asked","to":"credits","id":"n"}`)
	}
	n.settled("2026-03-01T00:00:20Z")
	second := n.drafts()[0]["id"].(string)
	n.want(200, "POST", "/v1/invoices/"+second+"/finalize", "")
	n.want(200, "POST", "/v1/invoices/"+second+"/void", `{"reason":"Ada said","reissue":true}`)
	n.exec(`UPDATE sellers SET name = ''`)
	n.settled("2026-03-01T02:00:00Z")
	n.settled("2026-03-01T04:00:00Z")
	n.want(200, "PUT", "/v1/sellers/default", `{"name":"Us"}`, "If-Match", "*")
	testkit.Eventually(t, "the reissue to be finalized", func() bool { return len(n.drafts()) == 0 })
	n.scheduled(201, `{"plan":"pro"}`)
	n.bill(200, "acme", `{"ends_at":"period_end"}`)
	n.setTo("2026-03-15T04:00:00Z")
	n.toldOverdue(1)
	n.settled("2026-04-01T02:00:00Z")
	n.want(204, "DELETE", acme, "")
	n.want(204, "DELETE", acme, "")
	last := n.want(200, "DELETE", acme+"?erase=true", "").json["key"].(string)
	n.tells("?customer="+last,
		"customer.created 2026-01-01T00:00:00 plan=pro plan_version=1",
		"customer.plan_changed 2026-01-01T00:00:00 plan=max plan_version=1 previous=pro1 <nil> <nil>",
		"customer.suspended 2026-01-02T00:00:00",
		"customer.resumed 2026-01-02T00:00:00",
		"customer.change_dropped 2026-01-03T00:00:00 at=2026-02-01T00:00:00Z plan=pro plan_version=1",
		"customer.plan_changed 2026-01-03T00:00:00 plan=pro plan_version=1 previous=max1 <nil> <nil>",
		"customer.change_dropped 2026-01-03T00:00:00 at=2026-02-01T00:00:00Z plan=max plan_version=1",
		"credit.granted 2026-01-04T00:00:00 amount_minor=300 currency=USD kind=promotional left_minor=300",
		"credit.expired 2026-01-20T00:00:00 amount_minor=300 currency=USD expired_minor=300 kind=promotional left_minor=0",
		"customer.plan_changed 2026-02-01T00:00:00 plan=max plan_version=1 previous=pro1 <nil> <nil>",
		"invoice.drafted 2026-02-01T00:00:10 amount_due_minor=2000 currency=USD kind=period status=draft total_minor=2000",
		"invoice.finalized 2026-02-01T01:00:10 amount_due_minor=2000 credited_minor=0 currency=USD kind=period number=TEST-1 status=finalized total_minor=2000",
		"payment.noted 2026-02-02T00:00:00 amount_minor=2000 currency=USD kind=payment number=TEST-1 open_minor=0",
		"invoice.paid 2026-02-02T00:00:00 amount_due_minor=2000 credited_minor=0 currency=USD kind=period number=TEST-1 status=paid total_minor=2000",
		"credit.granted 2026-02-03T00:00:00 amount_minor=150 currency=USD kind=carried left_minor=150",
		"invoice.credited 2026-02-03T00:00:00 amount_due_minor=2000 credit_note=<nil> <nil>TEST-2-150 credited_minor=150 currency=USD kind=period number=TEST-1 status=paid total_minor=2000",
		"invoice.drafted 2026-03-01T00:00:10 amount_due_minor=8850 currency=USD kind=period status=draft total_minor=9000",
		"invoice.finalized 2026-03-01T00:00:20 amount_due_minor=8850 credited_minor=0 currency=USD kind=period number=TEST-3 status=finalized total_minor=9000",
		"invoice.drafted 2026-03-01T00:00:20 amount_due_minor=8850 currency=USD kind=period status=draft total_minor=9000",
		"invoice.void 2026-03-01T00:00:20 amount_due_minor=8850 credited_minor=0 currency=USD kind=period number=TEST-3 status=void total_minor=9000",
		"invoice.held 2026-03-01T01:00:20 amount_due_minor=8850 currency=USD kind=period status=draft total_minor=9000",
		"invoice.finalized 2026-03-01T04:00:00 amount_due_minor=8850 credited_minor=0 currency=USD kind=period number=TEST-4 status=finalized total_minor=9000",
		"customer.change_dropped 2026-03-01T04:00:00 at=2026-04-01T00:00:00Z plan=pro plan_version=1",
		"invoice.overdue 2026-03-15T04:00:00 amount_due_minor=8850 credited_minor=0 currency=USD kind=period number=TEST-4 open_minor=8850 status=finalized total_minor=9000",
		"invoice.drafted 2026-04-01T00:00:10 amount_due_minor=9000 currency=USD kind=period status=draft total_minor=9000",
		"customer.ended 2026-04-01T00:00:00",
		"invoice.finalized 2026-04-01T01:00:10 amount_due_minor=9000 credited_minor=0 currency=USD kind=period number=TEST-5 status=finalized total_minor=9000",
		"customer.archived 2026-04-01T02:00:00",
	)
	all := n.want(200, "GET", "/v1/events?limit=1000", "")
	if strings.Contains(all.text, "acme") || strings.Contains(all.text, "Ada") || strings.Contains(all.text, "welcome") {
		t.Errorf("the erased customer is named in %s", all.text)
	}
	for _, e := range all.items() {
		if e["type"] == "plan.published" {
			if e["customer"] != nil || e["test_clock"] != nil {
				t.Errorf("%v", e)
			}
		} else if e["customer"] != last || e["test_clock"] != "clock" {
			t.Errorf("%v", e)
		}
	}
	n.pages(all.items())
}

// pages reads all events again in small pages, by cursors and by the last id.
func (n *node) pages(all []map[string]any) {
	n.t.Helper()
	for _, by := range []string{"cursor", "after"} {
		var ids []any
		for query := "?limit=7"; query != ""; {
			page := n.want(200, "GET", "/v1/events"+query, "")
			for _, e := range page.items() {
				ids = append(ids, e["id"])
			}
			switch next := page.json["next_cursor"]; {
			case next == nil:
				query = ""
			case by == "cursor":
				query = "?limit=7&after=0&cursor=" + next.(string)
			default:
				query = fmt.Sprintf("?limit=7&after=%v", ids[len(ids)-1])
			}
		}
		if len(ids) != len(all) {
			n.t.Errorf("by %s: %d events of %d", by, len(ids), len(all))
		}
		for i, e := range all {
			if e["id"] != float64(i+1) || ids[i] != e["id"] {
				n.t.Fatalf("by %s: event %d has id %v, and that of the page has %v", by, i+1, e["id"], ids[i])
			}
		}
	}
}

// A scheduled change that has come to count is told once, however many nodes write it at once. One that
// archiving takes away is dropped. What is told of an erased customer later names no credit by its id.
func TestEventsOfNodes(t *testing.T) {
	t.Parallel()
	n := scheduledNode(t, pgtest.NewDatabase(t))
	other := newNodeOn(t, n.database)
	n.joins("small")
	n.scheduled(201, `{"plan":"large"}`)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":70,"currency":"USD","id":"ada","expires_at":"2026-06-01T00:00:00Z"}`)
	n.setTo("2026-02-01T00:00:00Z")
	var all sync.WaitGroup
	for i := range 8 {
		by := []*node{n, other}[i%2]
		all.Go(func() {
			if err := by.store.Settle(t.Context(), "acme"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	other.tells("?customer=acme&type=customer.plan_changed", "customer.plan_changed 2026-02-01T00:00:00 plan=large plan_version=1 previous=small1 <nil> <nil>")
	n.settled("2026-02-10T00:00:00Z")
	n.scheduled(201, `{"plan":"free"}`)
	erased := n.want(200, "DELETE", "/v1/customers/acme?erase=true", "").json["key"].(string)
	n.tells("?customer="+erased+"&type=customer.change_dropped", "customer.change_dropped 2026-02-10T00:00:00 at=2026-03-01T00:00:00Z plan=free plan_version=1")
	n.tells("?customer="+erased+"&type=customer.archived", "customer.archived 2026-02-10T00:00:00")
	n.settled("2026-07-01T00:00:00Z")
	for _, what := range []string{"granted", "expired"} {
		for _, line := range n.told("?customer=" + erased + "&type=credit." + what) {
			if strings.Contains(line, "ada") || !strings.Contains(line, "currency=USD") {
				t.Error(line)
			}
		}
	}
	n.tells("?type=customer.ended")
}

// What cannot be asked for is told what is wrong with it.
func TestWrongQueriesOfEvents(t *testing.T) {
	t.Parallel()
	n := billedNode(t)
	for query, want := range map[string]string{
		"?after=-1": "422 after", "?after=x": "422 after", "?after=": "422 after", "?after=1.5": "422 after", "?after=007": "422 after",
		"?after=9223372036854775808": "422 after",
		"?type=x":                    "422 type", "?type=": "422 type", "?type=plan.published,invoice.paid": "422 type",
		"?customer=": "422 customer", "?customer=a/b": "422 customer",
		"?limit=0": "422 limit", "?limit=1001": "422 limit", "?cursor=x": "422 cursor", "?since=1": "422 since", "?after=1&after=2": "422 after",
		"?customer=nobody": "404 ",
	} {
		if got := n.faultOf("GET", "/v1/events"+query, ""); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := n.do("GET", "/v1/events?type=x", ""); !strings.Contains(got.text, strings.Join(events.Types, ", ")) {
		t.Error(got.text)
	}
	if got := n.want(200, "GET", "/v1/events?after=9223372036854775807", ""); len(got.items()) != 0 {
		t.Error(got.text)
	}
}
