package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// toldOverdue waits until so many invoices were told to be overdue, and says when the last was.
func (n *node) toldOverdue(want int) (at int64) {
	n.t.Helper()
	testkit.Eventually(n.t, fmt.Sprintf("%d invoices are told to be overdue", want), func() bool {
		var got int
		check(n.t, n.store.Pool().QueryRow(testkit.Context(n.t),
			"SELECT count(*), coalesce(max(told_at), 0) FROM unpaid_invoices WHERE told_at IS NOT NULL").Scan(&got, &at))
		return got == want
	})
	return at
}

// An invoice is overdue from its due_at on, to the microsecond, while something is open. It is told once,
// and again where a reversed payment opens it again.
func TestOverdue(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	list := func(want int, query string) {
		t.Helper()
		items := n.want(200, "GET", "/v1/invoices?status=overdue&"+query, "").items()
		if len(items) != want {
			t.Errorf("%s: %d invoices are overdue, want %d", query, len(items), want)
		}
		for _, i := range items {
			if i["overdue"] != true || i["status"] != "finalized" {
				t.Errorf("%v", i)
			}
		}
	}
	n.setTo("2026-02-15T01:00:09.999999Z")
	list(0, "test_clock=clock")
	n.setTo("2026-02-15T01:00:10Z")
	list(1, "test_clock=clock")
	list(1, "test_clock=any&customer=acme")
	list(0, "")
	list(0, "test_clock=clock&to=2026-02-01T00:00:00Z")
	list(1, "test_clock=clock&from=2026-02-01T00:00:00Z")
	if _, text, _ := n.text("GET", "/v1/invoices.csv?status=overdue&test_clock=clock", ""); strings.Count(text, "\n") != 2 {
		t.Errorf("CSV: %q", text)
	}
	if at, want := n.toldOverdue(1), time.Date(2026, 2, 15, 1, 0, 10, 0, time.UTC).UnixMicro(); at != want {
		t.Errorf("told at %d, want %d", at, want)
	}
	n.want(200, "POST", path+"/pay", `{"amount_minor":2379}`)
	list(1, "test_clock=clock")
	n.settled("2026-02-16T00:00:00Z")
	n.toldOverdue(1) // and not once more
	n.want(200, "POST", path+"/pay", `{}`)
	list(0, "test_clock=clock")
	n.toldOverdue(0)
	n.want(200, "POST", path+"/payments/2/reverse", `{"reason":"bounced","id":"r"}`)
	list(1, "test_clock=clock")
	if at, want := n.toldOverdue(1), time.Date(2026, 2, 16, 0, 0, 0, 0, time.UTC).UnixMicro(); at != want {
		t.Errorf("told at %d, want %d", at, want)
	}
	n.agreed("overdue again")
	// The event has the instant from which on it was overdue.
	testkit.Eventually(t, "both are told of", func() bool {
		return fmt.Sprint(n.told("?type=invoice.overdue")) == "[invoice.overdue 2026-02-15T01:00:10 amount_due_minor=2380 credited_minor=0 currency=USD kind=period number=TEST-1 open_minor=2380 status=finalized total_minor=2380"+
			" invoice.overdue 2026-02-16T00:00:00 amount_due_minor=2380 credited_minor=0 currency=USD kind=period number=TEST-1 open_minor=1 status=finalized total_minor=2380]"
	})
	n.want(200, "POST", path+"/payments/1/reverse", `{"reason":"bounced","id":"r1"}`)
	n.want(200, "POST", path+"/void", `{"reason":"x"}`)
	list(0, "test_clock=any")
	n.toldOverdue(0)
}

// Overdue invoices of PostgreSQL's time are a concern of the overview, until they are paid. Those on
// test clocks are none.
func TestOverdueIsAConcern(t *testing.T) {
	t.Parallel()
	n := overviewNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2030-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"base_in":"advance","limits":[]}`)
	for key, clock := range map[string]string{"live": "", "tried": `,"test_clock":"clock"`} {
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"C","plan":"pro"`+clock+`}`)
		n.bill(200, key, `{"due_days":0}`)
	}
	n.setTo("2030-03-05T00:00:00Z")
	var id string
	testkit.Eventually(t, "the live opening is a draft", func() bool {
		items := n.want(200, "GET", "/v1/invoices?status=draft", "").items()
		if len(items) == 1 {
			id = items[0]["id"].(string)
		}
		return len(items) == 1
	})
	concerned := func(want bool) {
		t.Helper()
		testkit.Eventually(t, "the overview tells of it, or not", func() bool {
			o := n.overview()
			told := false
			for _, c := range o["concerns"].([]any) {
				told = told || c.(map[string]any)["name"] == "invoices_overdue"
			}
			return told == want && (o["books"].(map[string]any)["overdue_invoices"] == 1.) == want
		})
	}
	n.want(200, "POST", "/v1/invoices/"+id+"/finalize", "")
	concerned(true)
	n.want(200, "POST", "/v1/invoices/"+id+"/pay", `{}`)
	concerned(false)
}
