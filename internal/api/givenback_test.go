package api

import (
	"fmt"
	"strings"
	"testing"
)

// aprilNode has customer acme on a plan whose base of 3,000 is due in advance, since April 1. Its
// opening is final and not paid.
func aprilNode(t *testing.T) (n *node, opening string) {
	t.Helper()
	n = newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-04-01T00:00:00Z"}`)
	for key, base := range map[string]string{
		"ahead": `3000,"base_in":"advance"`, "larger": `6000,"base_in":"advance"`, "arrears": `3000,"base_in":"arrears"`,
	} {
		n.want(201, "PUT", "/v1/plans/"+key, `{"name":"P","currency":"USD","interval":"month","base_price_minor":`+base+`}`)
	}
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"ahead","billing_anchor":"2026-04-01T00:00:00","test_clock":"clock"}`)
	n.settled("2026-04-01T01:00:10Z")
	return n, "/v1/invoices/" + n.invoicesOf("acme")[0]
}

// moved puts acme onto a plan at once.
func (n *node) moved(plan, anchor string) {
	n.t.Helper()
	tag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"C","plan":"`+plan+`","billing_anchor":"`+anchor+`T00:00:00","change":"now"}`, "If-Match", tag)
}

// credited is what acme has of credits.
func (n *node) credited() string {
	n.t.Helper()
	var all []string
	for _, b := range n.want(200, "GET", "/v1/customers/acme/credits", "").json["balances"].([]any) {
		b := b.(map[string]any)
		all = append(all, fmt.Sprintf("%v %v", b["kind"], b["left_minor"]))
	}
	return strings.Join(all, ", ")
}

// aprilCuts cut acme's April, or May, whatever the cause.
var aprilCuts = []struct {
	name string
	held string // when the invoice that holds the base is final
	cut  func(n *node)
	done string // when the cut period's own invoice is final; a draft of it is there an hour before
}{
	{"the end of billing", "2026-04-01T01:00:10Z", func(n *node) { n.bill(200, "acme", `{"ends_at":"2026-04-16T00:00:00Z"}`) }, "2026-04-16T01:00:10Z"},
	{"another plan", "2026-04-01T01:00:10Z", func(n *node) {
		n.settled("2026-04-16T00:00:00Z")
		n.moved("larger", "2026-04-01")
	}, "2026-04-16T01:00:10Z"},
	{"archived", "2026-04-01T01:00:10Z", func(n *node) {
		n.settled("2026-04-16T00:00:00Z")
		n.want(204, "DELETE", "/v1/customers/acme", "")
	}, "2026-04-16T01:00:20Z"},
	{"another anchor", "2026-04-01T01:00:10Z", func(n *node) {
		n.settled("2026-04-16T00:00:00Z")
		n.moved("ahead", "2026-04-16")
	}, "2026-04-16T01:00:10Z"},
	{"to arrears", "2026-04-01T01:00:10Z", func(n *node) {
		n.settled("2026-04-16T00:00:00Z")
		n.moved("arrears", "2026-04-01")
	}, "2026-04-16T01:00:10Z"},
	{"at the start", "2026-04-01T01:00:10Z", func(n *node) {
		n.setTo("2026-04-01T00:00:00Z")
		n.moved("larger", "2026-04-01")
	}, "2026-05-01T01:00:10Z"},
	{
		"a base on the invoice of the period before", "2026-05-01T01:00:10Z", func(n *node) { n.bill(200, "acme", `{"ends_at":"2026-05-16T00:00:00Z"}`) },
		"2026-05-16T01:00:10Z",
	},
}

// What a final invoice gave back of a base in advance is not given back again by a void invoice that
// holds the base.
func TestVoidGivesNothingBackAgain(t *testing.T) {
	t.Parallel()
	for _, c := range aprilCuts {
		t.Run(c.name, func(t *testing.T) {
			n, _ := aprilNode(t)
			n.settled(c.held)
			all := n.invoicesOf("acme")
			holder := "/v1/invoices/" + all[len(all)-1]
			c.cut(n)
			n.settled(c.done)
			before := n.credited()
			for _, reissue := range []string{"false", "true"} {
				got := n.want(409, "POST", holder+"/void", `{"reason":"x","reissue":`+reissue+`}`)
				if !strings.Contains(got.text, "unused") {
					t.Error(got.text)
				}
			}
			if after := n.credited(); after != before {
				t.Errorf("credits: %s, were %s", after, before)
			}
			n.agreed(c.name)
		})
	}
}

// While the unused base is only in a draft, the draft loses it with the void invoice, and a reissue
// gives it back to the draft.
func TestADraftsUnusedGoesWithTheVoidInvoice(t *testing.T) {
	t.Parallel()
	for _, c := range aprilCuts {
		t.Run(c.name, func(t *testing.T) {
			n, _ := aprilNode(t)
			n.settled(c.held)
			all := n.invoicesOf("acme")
			c.cut(n)
			draft := strings.Replace(c.done, "T01:", "T00:", 1)
			n.settled(draft)
			with := unusedOf(n.drafts())
			if with >= 0 {
				t.Fatalf("%d is unused in %v", with, n.drafts())
			}
			n.want(200, "POST", "/v1/invoices/"+all[len(all)-1]+"/void", `{"reason":"x","reissue":true}`)
			if got := unusedOf(n.drafts()); got != with {
				t.Errorf("%d is unused beside a reissue, want %d", got, with)
			}
			for _, i := range n.drafts() {
				if i["of"] != nil {
					n.want(200, "POST", "/v1/invoices/"+i["id"].(string)+"/finalize", "")
					n.want(200, "POST", "/v1/invoices/"+i["id"].(string)+"/void", `{"reason":"x"}`)
				}
			}
			if got := unusedOf(n.drafts()); got != 0 {
				t.Errorf("%d is unused of a base that was written off", got)
			}
			n.settled(c.done)
			if got := n.credited(); got != "" {
				t.Errorf("credits: %s", got)
			}
			n.agreed(c.name)
		})
	}
}

// What somebody gave back twice by hand is found: an opening that became void although a later
// invoice had given a part of its base back. A charge of that puts the money right;
// the invoices stay as they are, and the check goes on to name them.
func TestReconcileFindsWhatWasGivenBackTwice(t *testing.T) {
	t.Parallel()
	n, _ := aprilNode(t)
	n.moved("ahead", "2026-04-01") // changes nothing
	n.settled("2026-04-16T00:00:00Z")
	n.moved("arrears", "2026-04-01")
	n.settled("2026-04-16T01:00:10Z")
	n.agreed("at first")
	n.exec(`DELETE FROM unpaid_invoices; UPDATE invoices SET status = 'void', void_reason = 'x' WHERE kind = 'opening'`)
	twice := func() {
		t.Helper()
		bad := n.reconciled()
		const want = "detail:Line 1, base: later invoices and credit notes gave back more than the line and its corrections came to."
		if found := bad["lines_are_given_back_once"]; len(bad) != 1 || !strings.Contains(found, want) || !strings.Contains(found, "expected:0") ||
			!strings.Contains(found, "found:1500") {
			t.Errorf("%v", bad)
		}
	}
	twice()
	n.want(201, "POST", "/v1/customers/acme/charges", `{"description":"Given back twice by invoice 2","amount_minor":1500,"currency":"USD","id":"twice"}`)
	n.settled("2026-05-01T01:00:10Z")
	twice()
	if got := n.credited(); got != "carried 0" { // the second half of April, and the charge, have used it up
		t.Errorf("credits: %s", got)
	}
}

// drafts are those of acme.
func (n *node) drafts() (all []map[string]any) {
	n.t.Helper()
	for _, i := range n.want(200, "GET", "/v1/invoices?customer=acme&test_clock=any&status=draft", "").json["items"].([]any) {
		all = append(all, i.(map[string]any))
	}
	return all
}

// unusedOf is what invoices give back as unused.
func unusedOf(all []map[string]any) (minor int) {
	for _, i := range all {
		for _, l := range i["lines"].([]any) {
			if l := l.(map[string]any); l["kind"] == "unused" {
				minor += int(l["amount_minor"].(float64))
			}
		}
	}
	return minor
}

// noted asks for a credit note of a line, and returns what is said.
func (n *node) noted(status int, invoice string, line, minor int, id string) string {
	n.t.Helper()
	return n.want(status, "POST", invoice+"/credit-notes", fmt.Sprintf(`{"lines":[{"n":%d,"amount_minor":%d}],"reason":"x","to":"outside","id":%q}`,
		line, minor, id)).text
}

// A note takes no more of a base than a cut left of it, and a cut no more than notes left.
func TestNotesAndUnusedAddUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after int // notes before the cut, and what may be noted after it
		credit        string
		why           string
	}{
		{"the cut first", 0, 1500, "carried 1500", "1500 is left of line 1, in minor units: its amount is 3000, 1500 was given back as unused"},
		{
			"a part before", 1000, 500, "carried 1500",
			"500 is left of line 1, in minor units: its amount is 3000, 1500 was given back as unused, credit notes took 1000",
		},
		{
			"more than is used before", 2000, 0, "carried 1000",
			"0 is left of line 1, in minor units: its amount is 3000, 1000 was given back as unused, credit notes took 2000",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, opening := aprilNode(t)
			n.want(200, "POST", opening+"/pay", `{}`)
			if c.before > 0 {
				n.noted(201, opening, 1, c.before, "before")
			}
			n.bill(200, "acme", `{"ends_at":"2026-04-16T00:00:00Z"}`)
			n.settled("2026-04-16T01:00:10Z")
			for _, much := range []int{3000, c.after + 1} {
				if said := n.noted(409, opening, 1, much, "much"); !strings.Contains(said, c.why) {
					t.Errorf("a note of %d: %s", much, said)
				}
			}
			if c.after > 0 {
				n.noted(201, opening, 1, c.after, "rest")
			}
			n.noted(409, opening, 1, 1, "more")
			if got := n.credited(); got != c.credit {
				t.Errorf("credits: %s, want %s", got, c.credit)
			}
			n.agreed(c.name)
		})
	}
}

// Corrections and notes of one line add up, in whatever order. The line came to 100.00.
func TestNotesAndCorrectionsAddUp(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-04-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"P","currency":"USD","interval":"month","prices":[{"meter":"requests","model":"per_unit","unit_price":"0.01"}]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"C","plan":"pro","billing_anchor":"2026-04-01T00:00:00","test_clock":"clock"}`)
	use := func() {
		t.Helper()
		n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":10000}`)
	}
	month := 4
	// billed lets the month end, and pays its invoice.
	billed := func() (invoice string) {
		t.Helper()
		month++
		n.settled(fmt.Sprintf("2026-%02d-01T01:00:10Z", month))
		all := n.invoicesOf("acme")
		invoice = "/v1/invoices/" + all[len(all)-1]
		if n.want(200, "GET", invoice, "").json["status"] == "finalized" {
			n.want(200, "POST", invoice+"/pay", `{}`)
		}
		return invoice
	}
	adjust := func(cost int) {
		t.Helper()
		body := fmt.Sprintf(`{"meter":"requests","cost":%d,"reason":"r","at":"2026-%02d-10T00:00:00Z","id":"a%d%d"}`, cost, month-1, month, cost)
		n.want(201, "POST", "/v1/customers/acme/adjustments", body)
	}
	corrected := func(invoice string) (minor int) {
		t.Helper()
		for _, l := range n.want(200, "GET", invoice, "").json["lines"].([]any) {
			if l := l.(map[string]any); l["kind"] == "correction" {
				minor += int(l["amount_minor"].(float64))
			}
		}
		return minor
	}

	// The correction first: nothing is left for a note, while the correction is in a draft, too.
	use()
	first := billed()
	adjust(-10000)
	n.settled(fmt.Sprintf("2026-%02d-01T00:00:10Z", month+1))
	const none = "0 is left of line 1, in minor units: its amount is 10000, corrections came to -10000"
	if said := n.noted(409, first, 1, 10000, "b"); !strings.Contains(said, none) {
		t.Error(said)
	}
	if got := corrected(billed()); got != -10000 {
		t.Errorf("corrected by %d", got)
	}
	n.noted(409, first, 1, 1, "b")
	n.agreed("after a correction")

	// The note first: the correction gives nothing more back.
	use()
	second := billed()
	n.noted(201, second, 1, 10000, "c")
	if line := n.previewed("acme", "requests", -10000, fmt.Sprintf("2026-%02d-10T00:00:00Z", month-1)); line["amount_minor"] != 0. {
		t.Errorf("the preview says %v", line)
	}
	adjust(-10000)
	if got := corrected(billed()); got != 0 {
		t.Errorf("corrected by %d after a note of the whole", got)
	}
	n.agreed("after a note")

	// By and by: 40.00 by a note, 80.00 less by an adjustment, of which 60.00 is left; then 50.00 more.
	use()
	third, of := billed(), month
	n.noted(201, third, 1, 4000, "d")
	adjust(-8000)
	if got := corrected(billed()); got != -6000 {
		t.Errorf("corrected by %d, want 6000 less", got)
	}
	n.noted(409, third, 1, 1, "e")
	month = of
	adjust(5000)
	month++
	fourth := billed()
	if got := corrected(fourth); got != 3000 {
		t.Errorf("corrected by %d, want 3000 more", got)
	}
	// Of the correction no more than its own amount may be noted, and of both no more than is left.
	if said := n.noted(409, fourth, 2, 3001, "f"); !strings.Contains(said,
		"3000 is left of line 2, in minor units: its amount is 3000. Of the line that it corrects, 3000 is left: its amount is 10000, corrections came to -3000, credit notes took 4000") {
		t.Error(said)
	}
	n.noted(201, third, 1, 1000, "g")
	n.noted(409, fourth, 2, 2001, "h")
	n.noted(201, fourth, 2, 2000, "i")
	n.noted(409, third, 1, 1, "j")
	n.agreed("after all")
}
