package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// owing is a node whose customer acme has one finalized invoice of 20.00 plus 19 %, due on
// 15 February 2026. It returns the invoice's path.
func owing(t *testing.T, before ...func(*node)) (*node, string) {
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"limits":[]}`)
	n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	n.bill(200, "acme", `{"taxes":[{"name":"VAT","percent":"19","inclusive":false}]}`)
	for _, do := range before {
		do(n)
	}
	n.settled("2026-02-01T01:00:10Z")
	return n, "/v1/invoices/" + n.invoicesOf("acme")[0]
}

// stands says what an invoice says of money: status, paid, open, the payments and the reversed ones.
func (n *node) stands(path string) string {
	n.t.Helper()
	i := n.want(200, "GET", path, "").json
	list := func(name string) (all []string) {
		some, _ := i[name].([]any)
		for _, p := range some {
			p := p.(map[string]any)
			all = append(all, fmt.Sprintf("%v:%v %v", p["n"], p["kind"], p["amount_minor"]))
		}
		return all
	}
	return strings.TrimSpace(fmt.Sprintf("%v paid %v open %v %s", i["status"], i["paid_minor"], i["open_minor"],
		strings.TrimSuffix(strings.Join(list("payments"), ", ")+" | "+strings.Join(list("reversed_payments"), ", "), " | ")))
}

func (n *node) standsAs(path, want string) {
	n.t.Helper()
	if got := n.stands(path); got != want {
		n.t.Errorf("%s, want %s", got, want)
	}
}

// An invoice is paid in parts. Each part is noted once under its id. Only all of them make it paid, and
// what is above what is open is refused.
func TestPayInParts(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	n.standsAs(path, "finalized paid 0 open 2380")
	one := `{"amount_minor":1000,"reference":"part 1","id":"p1"}`
	first := n.want(200, "POST", path+"/pay", one).json
	if paid := first["payments"].([]any)[0].(map[string]any); paid["at"] != "2026-02-01T01:00:10Z" || paid["reference"] != "part 1" ||
		first["paid_at"] != nil || first["reference"] != "part 1" {
		t.Errorf("%v", first)
	}
	n.want(200, "POST", path+"/pay", one)
	n.standsAs(path, "finalized paid 1000 open 1380 1:payment 1000")
	for body, want := range map[string]string{
		`{"amount_minor":1001,"reference":"part 1","id":"p1"}`: "422 ", `{"amount_minor":1000,"reference":"other","id":"p1"}`: "422 ",
		`{"id":"p1"}`: "422 ", `{"amount_minor":1381}`: "409 ", `{"amount_minor":1381,"id":"p2"}`: "409 ",
		`{"amount_minor":1,"id":""}`: "422 id", // a variable that is not set is no payment without an id
	} {
		if got := n.faultOf("POST", path+"/pay", body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	n.want(200, "POST", path+"/pay", `{"amount_minor":380,"id":"p2"}`) // a refused id is free
	n.settled("2026-02-03T00:00:00Z")
	last := n.want(200, "POST", path+"/pay", `{"id":"p3"}`).json
	n.standsAs(path, "paid paid 2380 open 0 1:payment 1000, 2:payment 380, 3:payment 1000")
	if last["paid_at"] != "2026-02-03T00:00:00Z" || last["reference"] != "part 1" || last["amount_due_minor"] != 2380. {
		t.Errorf("%v", last)
	}
	n.want(200, "POST", path+"/pay", one) // the answer of a repeat is the invoice as it is now
	n.want(409, "POST", path+"/pay", `{"amount_minor":1}`)
	n.agreed("paid in parts")
	if got := len(n.entries("")); got == 0 {
		t.Error("nothing is audited")
	}
}

// The id of a payment may be in the header, as that of a hit may.
func TestPayByTheIdOfTheHeader(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	for range 2 {
		n.want(200, "POST", path+"/pay", `{"amount_minor":1000}`, "Idempotency-Key", `"p1"`)
	}
	n.want(200, "POST", path+"/pay", `{"amount_minor":1000,"id":"p1"}`)
	n.want(422, "POST", path+"/pay", `{"amount_minor":999}`, "Idempotency-Key", "p1")
	n.want(422, "POST", path+"/pay", `{"amount_minor":1,"id":"p2"}`, "Idempotency-Key", "p3")
	n.want(422, "POST", path+"/pay", `{"amount_minor":1}`, "Idempotency-Key", `"p`)
	n.standsAs(path, "finalized paid 1000 open 1380 1:payment 1000")
}

// A payment that bounced counts no more: its amount is open again. It is reversed once under its id.
func TestReverseAPayment(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	n.want(200, "POST", path+"/pay", `{"amount_minor":1000}`)
	n.want(200, "POST", path+"/pay", `{}`)
	reverse := path + "/payments/1/reverse"
	n.want(200, "POST", reverse, `{"reason":"bounced","id":"r"}`)
	n.want(200, "POST", reverse, `{"reason":"bounced","id":"r"}`)
	n.standsAs(path, "finalized paid 1380 open 1000 2:payment 1380 | 1:payment 1000")
	const at = " 2026-02-01T01:00:10 amount_minor="
	n.tells("?type=payment.noted", "payment.noted"+at+"1000 currency=USD kind=payment number=TEST-1 open_minor=1380",
		"payment.noted"+at+"1380 currency=USD kind=payment number=TEST-1 open_minor=0")
	n.tells("?type=payment.reversed", "payment.reversed"+at+"1000 currency=USD kind=payment number=TEST-1 open_minor=1000")
	n.agreed("open again")
	for _, c := range [][2]string{{reverse, `{"reason":"another","id":"r"}`}, {path + "/payments/2/reverse", `{"reason":"bounced","id":"r"}`}} {
		if got := n.faultOf("POST", c[0], c[1]); got != "422 " {
			t.Errorf("%s %s: %s", c[0], c[1], got)
		}
	}
	n.want(409, "POST", reverse, `{"reason":"bounced","id":"r2"}`)
	n.want(404, "POST", path+"/payments/3/reverse", `{"reason":"bounced","id":"r3"}`)
	for _, spelled := range []string{"01", "%2B1"} { // a number has one spelling, also under an id that was used
		n.want(404, "POST", path+"/payments/"+spelled+"/reverse", `{"reason":"bounced","id":"r"}`)
	}
	n.want(409, "POST", path+"/pay", `{"amount_minor":1001}`)
	n.want(200, "POST", path+"/pay", `{"amount_minor":1000,"reference":"again"}`)
	n.standsAs(path, "paid paid 2380 open 0 2:payment 1380, 3:payment 1000 | 1:payment 1000")
	n.agreed("paid again")
	reversed := n.want(200, "GET", path, "").json["reversed_payments"].([]any)[0].(map[string]any)
	if reversed["reversed_at"] != "2026-02-01T01:00:10Z" || reversed["reversal_reason"] != "bounced" {
		t.Errorf("%v", reversed)
	}
}

// A note lowers what is open, and then pays back what was paid. What is reversed afterwards is open,
// also of an invoice that notes took whole.
func TestNotesAndPayments(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	note := func(amount int, to, id string) map[string]any {
		t.Helper()
		made := n.want(201, "POST", path+"/credit-notes", fmt.Sprintf(`{"lines":[{"n":1,"amount_minor":%d}],"reason":"x","to":%q,"id":%q}`, amount, to, id)).json
		return made["money"].(map[string]any)
	}
	goes := func(money map[string]any, want string) {
		t.Helper()
		if got := fmt.Sprint(money["open_minor"], money["credits_minor"], money["outside_minor"], money["returned_minor"]); got != want {
			t.Errorf("the note's money went to %s, want %s", got, want)
		}
	}
	n.want(200, "POST", path+"/pay", `{"amount_minor":2000}`)
	goes(note(200, "credits", "n1"), "238 0 0 0") // of 380 that are open
	n.standsAs(path, "finalized paid 2000 open 142 1:payment 2000")
	goes(note(200, "credits", "n2"), "142 96 0 0")
	n.standsAs(path, "paid paid 2000 open 0 1:payment 2000")
	if at := n.want(200, "GET", path, "").json["paid_at"]; at != "2026-02-01T01:00:10Z" {
		t.Errorf("paid at %v", at)
	}
	n.agreed("nothing is open")
	goes(note(1600, "outside", "n3"), "0 0 1904 0")
	n.standsAs(path, "credited paid 2000 open 0 1:payment 2000")
	n.agreed("all is credited")
	n.want(200, "POST", path+"/payments/1/reverse", `{"reason":"bounced","id":"r"}`)
	n.standsAs(path, "finalized paid 0 open 2000  | 1:payment 2000")
	n.agreed("open again, and credited whole")
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)
	n.want(200, "POST", path+"/pay", `{}`)
	n.standsAs(path, "credited paid 2000 open 0 2:payment 2000 | 1:payment 2000")
	n.agreed("paid again")
}

// Credits pay at finalization, with money. What a note pays outside is at most the money and the paid
// credits. The rest returns to the gift, with its expiry.
func TestNotesReturnToCredits(t *testing.T) {
	t.Parallel()
	n, path := owing(t, func(n *node) {
		n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":500,"currency":"USD","id":"gift","expires_at":"2026-03-01T00:00:00Z"}`)
		n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":300,"currency":"USD","id":"bought","kind":"paid"}`)
	})
	n.want(200, "POST", path+"/pay", `{}`)
	n.standsAs(path, "paid paid 1580 open 0 1:payment 1580")
	made := n.want(201, "POST", path+"/credit-notes",
		`{"lines":[{"n":1,"amount_minor":2000}],"reason":"x","to":"outside","id":"n"}`).json["money"].(map[string]any)
	if made["outside_minor"] != 1880. || made["returned_minor"] != 500. {
		t.Errorf("%v", made)
	}
	credits := n.want(200, "GET", "/v1/customers/acme/credits", "").json
	for _, c := range credits["balances"].([]any) {
		c := c.(map[string]any)
		want := map[string]any{"gift": 500., "bought": 0.}[c["id"].(string)]
		if c["left_minor"] != want || c["id"] == "gift" && c["expires_at"] != "2026-03-01T00:00:00Z" {
			t.Errorf("%v", c)
		}
	}
	n.agreed("returned by a note")
}

// A credit that was given never becomes money, wherever the note's money goes: it comes back as it was. Over
// all notes no more goes out, or into a carried credit, than was paid.
func TestGivenCreditsStayGiven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gift  int64
		notes []string // amount and to
		goes  string   // carried, outside and returned of all notes
		left  string   // of the credits, afterwards
	}{
		"outside":             {3000, []string{"3000 outside"}, "0 0 3000", "gift promotional 3000 2026-04-20T00:00:00Z"},
		"to credits":          {3000, []string{"3000 credits"}, "0 0 3000", "gift promotional 3000 2026-04-20T00:00:00Z"},
		"a part outside":      {1000, []string{"3000 outside"}, "0 2000 1000", "gift promotional 1000 2026-04-20T00:00:00Z"},
		"a part to credits":   {1000, []string{"3000 credits"}, "2000 0 1000", "carried 2000 <nil>, gift promotional 1000 2026-04-20T00:00:00Z"},
		"both, one by one":    {1000, []string{"1500 credits", "1500 outside"}, "1500 500 1000", "carried 1500 <nil>, gift promotional 1000 2026-04-20T00:00:00Z"},
		"both, the other way": {1000, []string{"1500 outside", "1500 credits"}, "500 1500 1000", "carried 500 <nil>, gift promotional 1000 2026-04-20T00:00:00Z"},
		"less than was paid":  {1000, []string{"900 credits", "1100 outside"}, "900 1100 0", "carried 900 <nil>, gift promotional 0 2026-04-20T00:00:00Z"},
		"one unit beyond that": {
			1000,
			[]string{"900 credits", "1101 credits"},
			"2000 0 1",
			"carried 1100 <nil>, carried 900 <nil>, gift promotional 1 2026-04-20T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-04-01T00:00:00Z"}`)
			n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":3000,"base_in":"advance","limits":[]}`)
			n.want(201, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","billing_anchor":"2026-04-01T00:00:00","test_clock":"clock"}`)
			n.want(201, "POST", "/v1/customers/acme/credits",
				fmt.Sprintf(`{"amount_minor":%d,"currency":"USD","id":"gift","expires_at":"2026-04-20T00:00:00Z"}`, c.gift))
			n.settled("2026-04-02T00:00:00Z")
			path := "/v1/invoices/" + n.invoicesOf("acme")[0]
			if c.gift < 3000 {
				n.want(200, "POST", path+"/pay", `{}`)
			}
			var carried, outside, returned float64
			for k, note := range c.notes {
				amount, to, _ := strings.Cut(note, " ")
				money := n.want(201, "POST", path+"/credit-notes", fmt.Sprintf(`{"lines":[{"n":1,"amount_minor":%s}],"reason":"x","to":%q,"id":"n%d"}`, amount,
					to, k)).json["money"].(map[string]any)
				carried, outside, returned = carried+money["credits_minor"].(float64), outside+money["outside_minor"].(float64), returned+money["returned_minor"].(float64)
			}
			if got := fmt.Sprint(carried, outside, returned); got != c.goes {
				t.Errorf("the money went to %s, want %s", got, c.goes)
			}
			var left []string
			for _, b := range n.want(200, "GET", "/v1/customers/acme/credits", "").json["balances"].([]any) {
				b := b.(map[string]any)
				id, _, _ := strings.Cut(b["id"].(string), ":")
				if id != "carried" {
					id += " " + b["kind"].(string)
				}
				left = append(left, fmt.Sprint(id, " ", b["left_minor"], " ", b["expires_at"]))
			}
			slices.Sort(left)
			if got := strings.Join(left, ", "); got != c.left {
				t.Errorf("the credits are %s, want %s", got, c.left)
			}
			n.agreed("after notes")
		})
	}
}

// Void takes what nobody paid, or what credits alone paid. These live on for 30 days at least. A payment
// that stands keeps it.
func TestVoidAndPayments(t *testing.T) {
	t.Parallel()
	n, path := owing(t, func(n *node) {
		n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":400,"currency":"USD","id":"brief","expires_at":"2026-02-05T00:00:00Z"}`)
		n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":5000,"currency":"USD","id":"long","expires_at":"2027-01-01T00:00:00Z"}`)
	})
	n.standsAs(path, "paid paid 0 open 0")
	n.want(200, "POST", path+"/void", `{"reason":"x","reissue":true}`)
	n.agreed("void, and credits alone had paid")
	for _, c := range n.want(200, "GET", "/v1/customers/acme/credits", "").json["balances"].([]any) {
		c := c.(map[string]any)
		want := map[string]string{"brief": "400 2026-03-03T01:00:10Z", "long": "5000 2027-01-01T00:00:00Z"}[c["id"].(string)]
		if got := fmt.Sprintf("%v %v", c["left_minor"], c["expires_at"]); got != want {
			t.Errorf("%v has %s, want %s", c["id"], got, want)
		}
	}

	n, path = owing(t)
	n.want(200, "POST", path+"/pay", `{"amount_minor":1}`)
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)
	n.want(200, "POST", path+"/pay", `{}`)
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)
	n.want(200, "POST", path+"/payments/1/reverse", `{"reason":"x","id":"r1"}`)
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)
	n.want(200, "POST", path+"/payments/2/reverse", `{"reason":"x","id":"r2"}`)
	n.want(200, "POST", path+"/void", `{"reason":"x"}`)
	n.standsAs(path, "void paid 0 open 0  | 1:payment 1, 2:payment 2379")
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)
	n.want(409, "POST", path+"/pay", `{}`)
	n.agreed("void after its payments were reversed")
}

// The database lets no invoice become void of which a part is paid, and none be paid of which a part is
// open, whoever writes.
func TestTheDatabaseKeepsPayments(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	id := "'" + strings.TrimPrefix(path, "/v1/invoices/") + "'"
	n.want(200, "POST", path+"/pay", `{"amount_minor":1000}`)
	for status, set := range map[string]string{"void": `status = 'void', void_reason = 'x'`, "paid": `status = 'paid'`, "credited": `status = 'credited'`} {
		if _, err := n.store.Pool().Exec(testkit.Context(t), `UPDATE invoices SET `+set+` WHERE id = `+id); err == nil ||
			!strings.Contains(err.Error(), "cannot become "+status) {
			t.Errorf("told %v", err)
		}
	}
	n.standsAs(path, "finalized paid 1000 open 1380 1:payment 1000")
	n.agreed("nothing was written")
}
