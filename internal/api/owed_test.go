package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// owedNode has customer acme, whose billing ends on 16 April 2026. It pays 3.00 for each of its 30 units of
// April, and its last invoice is final.
func owedNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/units", `{"unit":"unit"}`)
	n.want(201, "PUT", "/v1/meters/free", `{"unit":"unit"}`)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-04-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro",
		`{"name":"Pro","currency":"USD","interval":"month","base_price_minor":1000,"meters":["free"],"prices":[{"meter":"units","model":"per_unit","unit_price":"3"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-04-01T00:00:00","test_clock":"clock"}`)
	n.settled("2026-04-02T10:10:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"units","cost":30,"id":"hit"}`)
	n.bill(200, "acme", `{"ends_at":"2026-04-16T00:00:00Z"}`)
	n.settled("2026-04-16T01:00:10Z")
	return n
}

// owed says what acme's invoices after the first so many are: status, times, and amounts of the lines.
func (n *node) owed(skip int) string {
	n.t.Helper()
	var all []string
	for _, i := range n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any)[skip:] {
		i := i.(map[string]any)
		var lines []string
		for _, l := range i["lines"].([]any) {
			l := l.(map[string]any)
			lines = append(lines, fmt.Sprint(l["kind"], " ", l["amount_minor"]))
		}
		start, end := fmt.Sprint(i["period_start"]), fmt.Sprint(i["period_end"])
		if start == end {
			start = "at"
		}
		all = append(all, fmt.Sprintf("%v %v %s %s: %s = %v", i["kind"], i["status"], start, strings.TrimSuffix(end, "T00:00:00Z"),
			strings.Join(lines, ", "), i["total_minor"]))
	}
	slices.Sort(all) // a void invoice and its reissue may have been made at one instant
	return strings.Join(all, "\n")
}

func (n *node) owedAre(when string, skip int, want ...string) {
	n.t.Helper()
	slices.Sort(want)
	if got := n.owed(skip); got != strings.Join(want, "\n") {
		n.t.Errorf("%s:\n%s\nwant\n%s", when, got, strings.Join(want, "\n"))
	}
	n.agreed(when)
}

func (n *node) adjusted(cost int, at, id string) {
	n.t.Helper()
	n.want(201, "POST", "/v1/customers/acme/adjustments", fmt.Sprintf(`{"meter":"units","cost":%d,"reason":"x","at":%q,"id":%q}`, cost, at, id))
}

func (n *node) charge(minor int, id string) {
	n.t.Helper()
	n.want(201, "POST", "/v1/customers/acme/charges", fmt.Sprintf(`{"description":"Setup","amount_minor":%d,"currency":"USD","id":%q}`, minor, id))
}

// What comes after the last invoice makes one of its own: drafted close-delay after the first of it, and
// finalized correction-time later. What comes after its draft makes another one.
func TestOwedAfterTheEnd(t *testing.T) {
	t.Parallel()
	n := owedNode(t)
	n.settled("2026-04-20T00:00:00Z")
	n.adjusted(-20, "2026-04-02T10:20:00Z", "a")
	n.settled("2026-04-20T00:00:09Z")
	n.charge(500, "c")
	n.owedAre("before the draft", 1)
	n.settled("2026-04-20T00:00:10Z")
	n.owedAre("the draft", 1, "period draft at 2026-04-16: correction -6000, charge 500 = -5500")
	n.charge(700, "d")
	n.want(200, "POST", "/v1/refunds", `{"customer":"acme","meter":"units","cost":1,"hit":"hit","id":"r"}`)
	n.settled("2026-04-20T01:00:09Z")
	n.owedAre("a later draft", 1, "period draft at 2026-04-16: correction -6000, charge 500 = -5500",
		"period draft at 2026-04-16: correction -300, charge 700 = 400")
	n.settled("2026-04-20T01:00:10Z")
	n.owedAre("finalized", 1, "period paid at 2026-04-16: correction -6000, charge 500 = -5500", "period draft at 2026-04-16: correction -300, charge 700 = 400")
	n.settled("2026-04-20T01:00:20Z")
	n.owedAre("the later one", 1, "period paid at 2026-04-16: correction -6000, charge 500 = -5500",
		"period paid at 2026-04-16: correction -300, charge 700 = 400")
	if got := n.credited(); got != "carried 5100" {
		t.Error(got)
	}
	n.want(404, "GET", "/v1/customers/acme/invoices/upcoming", "")
	for _, form := range []string{".html", ".csv", ".pdf"} {
		n.want(200, "GET", "/v1/invoices/"+n.invoicesOf("acme")[1]+form, "")
	}
}

// What costs nothing makes no invoice: units of after the end, of a meter without a price, of a commit after
// the end, and a correction of 0.
func TestNothingIsOwedAfterTheEnd(t *testing.T) {
	t.Parallel()
	n := owedNode(t)
	n.bill(200, "acme", `{"ends_at":"2026-04-16T00:00:00Z","after_end":"free"}`)
	n.settled("2026-04-20T00:00:00Z")
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"units","cost":5}`)
	id := n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"units","cost":5,"ttl_ms":60000}`).json["id"].(string)
	n.want(200, "POST", "/v1/reservations/"+id+"/commit", `{"cost":5}`)
	n.adjusted(3, "2026-04-18T00:00:00Z", "late")
	n.want(201, "POST", "/v1/customers/acme/adjustments", `{"meter":"free","cost":3,"reason":"x","at":"2026-04-02T10:20:00Z","id":"free"}`)
	n.adjusted(3, "2026-04-02T10:20:00Z", "on")
	n.adjusted(-3, "2026-04-02T10:20:00Z", "off")
	n.settled("2026-04-21T00:00:00Z")
	n.owedAre("nothing", 1)
}

// An end may leave a reservation open. Its commit is free.
func TestACommitAfterTheEndIsFree(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/units", `{"unit":"unit"}`)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-04-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro",
		`{"name":"Pro","currency":"USD","interval":"month","base_price_minor":1000,"prices":[{"meter":"units","model":"per_unit","unit_price":"3"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-04-01T00:00:00","test_clock":"clock"}`)
	n.bill(200, "acme", `{"ends_at":"2026-04-16T00:00:00Z"}`)
	n.settled("2026-04-15T23:59:59Z")
	id := n.want(201, "POST", "/v1/reservations", `{"customer":"acme","meter":"units","cost":5,"ttl_ms":80000000}`).json["id"].(string)
	n.settled("2026-04-16T01:00:10Z")
	n.want(200, "POST", "/v1/reservations/"+id+"/commit", `{"cost":5}`)
	n.settled("2026-04-21T00:00:00Z")
	n.owedAre("free", 0, "period finalized 2026-04-01T00:00:00Z 2026-04-16: base 500, usage 0 = 500")
}

// What the void of such an invoice returns waits for something new. Its reissue takes it at once.
func TestVoidOfWhatWasOwed(t *testing.T) {
	t.Parallel()
	n := owedNode(t)
	n.settled("2026-04-20T00:00:00Z")
	n.adjusted(20, "2026-04-02T10:20:00Z", "a")
	n.charge(500, "c")
	n.settled("2026-04-20T01:00:10Z")
	first := "period finalized at 2026-04-16: correction 6000, charge 500 = 6500"
	n.owedAre("final", 1, first)
	void := func(reissue bool) { // what was owed, and is final
		n.t.Helper()
		for _, i := range n.want(200, "GET", "/v1/customers/acme/invoices", "").json["items"].([]any)[1:] {
			if i := i.(map[string]any); i["status"] == "finalized" {
				n.want(200, "POST", fmt.Sprintf("/v1/invoices/%v/void", i["id"]), fmt.Sprintf(`{"reason":"x","reissue":%t}`, reissue))
			}
		}
	}
	void(true)
	n.owedAre("a reissue", 1, strings.Replace(first, "finalized", "void", 1), strings.Replace(first, "finalized", "draft", 1))
	n.settled("2026-04-20T02:00:10Z")
	n.owedAre("the reissue is final", 1, strings.Replace(first, "finalized", "void", 1), first)
	void(false)
	n.settled("2026-05-20T00:00:00Z")
	gone := []string{strings.Replace(first, "finalized", "void", 1), strings.Replace(first, "finalized", "void", 1)}
	n.owedAre("it waits", 1, gone...)
	n.adjusted(1, "2026-04-20T10:20:00Z", "after the end")
	n.settled("2026-05-21T00:00:00Z")
	n.owedAre("nothing new", 1, gone...)
	n.charge(7, "d")
	n.settled("2026-05-21T01:00:10Z")
	n.owedAre("something new", 1, append(gone, "period finalized at 2026-04-16: correction 6000, charge 500, charge 7 = 6507")...)
}

// The void of the last invoice itself returns its charges, and what it gave back of a base in advance. No later
// invoice of a period takes them, also of a customer that is archived or erased.
func TestVoidOfTheLastInvoice(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]string{"ended": "", "archived": "/v1/customers/acme", "erased": "/v1/customers/acme?erase=true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-04-01T00:00:00Z"}`)
			n.want(201, "PUT", "/v1/plans/ahead", `{"name":"Ahead","currency":"USD","interval":"month","base_price_minor":3000,"base_in":"advance"}`)
			n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"ahead","billing_anchor":"2026-04-01T00:00:00","test_clock":"clock"}`)
			n.bill(200, "acme", `{"ends_at":"2026-04-16T00:00:00Z","buyer":{"name":"Acme Inc."}}`)
			n.settled("2026-04-02T00:00:00Z")
			n.charge(2500, "c")
			n.settled("2026-04-16T01:00:10Z")
			all := n.invoicesOf("acme")
			switch name {
			case "archived":
				n.want(204, "DELETE", gone, "")
			case "erased":
				n.want(200, "DELETE", gone, "")
			}
			list := func() []string { return n.listed("?test_clock=any") }
			if got := len(list()); got != 2 {
				t.Fatal(got, " invoices")
			}
			n.want(200, "POST", "/v1/invoices/"+all[1]+"/void", `{"reason":"x"}`)
			n.settled("2026-04-20T00:00:00Z")
			if got := len(list()); got != 3 {
				t.Fatal(got, " invoices")
			}
			n.agreed(name)
			last := n.want(200, "GET", "/v1/invoices?test_clock=any", "").json["items"].([]any)
			for _, i := range last {
				i := i.(map[string]any)
				if i["id"] == all[0] || i["id"] == all[1] {
					continue
				}
				if i["total_minor"] != 1000. || i["period_start"] != "2026-04-16T00:00:00Z" || i["buyer"].(map[string]any)["name"] != "Acme Inc." {
					t.Errorf("%v", i)
				}
			}
			var buyer string
			check(t, n.store.Pool().QueryRow(testkit.Context(t), `SELECT buyer::text FROM billing_accounts`).Scan(&buyer))
			if (buyer == "{}") != (name == "erased") {
				t.Error(buyer)
			}
		})
	}
}

// A chain that begins before the draft takes what came.
func TestANewChainTakesWhatIsOwed(t *testing.T) {
	t.Parallel()
	n := owedNode(t)
	n.settled("2026-04-20T00:00:00Z")
	n.charge(500, "c")
	n.adjusted(-20, "2026-04-02T10:20:00Z", "a")
	n.bill(200, "acme", `{}`)
	n.settled("2026-04-30T00:00:00Z")
	n.owedAre("it waits for May", 1)
	n.settled("2026-05-01T01:00:10Z")
	n.owedAre("the new chain", 1, "period paid 2026-04-20T00:00:00Z 2026-05-01: base 367, usage 0, correction -6000, charge 500 = -5133")
}

// A credit pays what was owed if it has not expired when that is finalized, however long ago billing ended.
func TestCreditsPayWhatIsOwed(t *testing.T) {
	t.Parallel()
	n := owedNode(t)
	n.settled("2026-04-20T00:00:00Z")
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":100,"currency":"USD","id":"brief","expires_at":"2026-04-20T01:00:10Z"}`)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":30,"currency":"USD","id":"long","expires_at":"2026-04-20T01:00:10.000001Z"}`)
	n.charge(500, "c")
	n.settled("2026-04-20T03:00:00Z")
	i := n.want(200, "GET", "/v1/invoices/"+n.invoicesOf("acme")[1], "").json
	if i["credits_minor"] != 30. || i["amount_due_minor"] != 470. {
		t.Errorf("credits %v, due %v", i["credits_minor"], i["amount_due_minor"])
	}
	n.agreed("paid by a credit")
}
