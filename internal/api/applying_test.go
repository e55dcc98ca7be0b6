package api

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"quotad/internal/testkit"
)

// credit is what a customer's credit has left, when it expires, and the kinds and amounts of its entries.
func (n *node) credit(customer, id string) string {
	n.t.Helper()
	all := n.want(200, "GET", "/v1/customers/"+customer+"/credits", "").json
	said := ""
	for _, c := range all["balances"].([]any) {
		if c := c.(map[string]any); c["id"] == id {
			said = fmt.Sprintf("%v left, %v:", c["left_minor"], c["expires_at"])
		}
	}
	list := all["entries"].([]any)
	for k := range list {
		if e := list[len(list)-1-k].(map[string]any); e["credit"] == id {
			said += fmt.Sprintf(" %v %v", e["kind"], e["amount_minor"])
		}
	}
	return said
}

func (n *node) creditIs(id, want string) {
	n.t.Helper()
	if got := n.credit("acme", id); got != want {
		n.t.Errorf("%s: %s, want %s", id, got, want)
	}
}

// Credits pay what is open, in their order, and those that have expired by now do not. They come back
// when the payment is reversed or the invoice becomes void, for 30 days at least.
func TestApplyCredits(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	n.want(409, "POST", path+"/apply-credits", "")
	grant := func(id, more string, amount int) {
		t.Helper()
		n.want(201, "POST", "/v1/customers/acme/credits", fmt.Sprintf(`{"amount_minor":%d,"currency":"USD","id":%q%s}`, amount, id, more))
	}
	grant("gone", `,"priority":0,"expires_at":"2026-02-02T00:00:00Z"`, 100)
	n.settled("2026-02-02T00:00:00Z")
	n.want(409, "POST", path+"/apply-credits", "")
	grant("bought", `,"kind":"paid"`, 300)
	grant("gift", ``, 200)
	grant("soon", `,"expires_at":"2026-02-20T00:00:00Z"`, 1500)
	grant("last", `,"priority":51,"kind":"paid"`, 5000)
	n.want(200, "POST", path+"/pay", `{"amount_minor":80,"reference":"part"}`)
	i := n.want(200, "POST", path+"/apply-credits", "").json
	n.standsAs(path, "paid paid 2380 open 0 1:payment 80, 2:credits 2300")
	if i["amount_due_minor"] != 2380. || i["credits_minor"] != 0. || i["reference"] != "part" || i["paid_at"] != "2026-02-02T00:00:00Z" {
		t.Errorf("%v", i)
	}
	n.creditIs("soon", "0 left, 2026-02-20T00:00:00Z: granted 1500 applied -1500")
	n.creditIs("gift", "0 left, <nil>: granted 200 applied -200")
	n.creditIs("bought", "0 left, <nil>: granted 300 applied -300")
	n.creditIs("last", "4700 left, <nil>: granted 5000 applied -300")
	n.agreed("credits paid the rest")
	n.want(409, "POST", path+"/apply-credits", "")
	n.want(409, "POST", path+"/void", `{"reason":"x"}`)

	n.settled("2026-02-25T00:00:00Z")
	n.want(200, "POST", path+"/payments/2/reverse", `{"reason":"by mistake","id":"r"}`)
	n.standsAs(path, "finalized paid 80 open 2300 1:payment 80 | 2:credits 2300")
	n.creditIs("soon", "1500 left, 2026-03-27T00:00:00Z: granted 1500 applied -1500 returned 1500")
	n.creditIs("last", "5000 left, <nil>: granted 5000 applied -300 returned 300")
	n.agreed("they returned")
	n.want(200, "POST", path+"/apply-credits", "")
	n.standsAs(path, "paid paid 2380 open 0 1:payment 80, 3:credits 2300 | 2:credits 2300")
	n.want(200, "POST", path+"/payments/1/reverse", `{"reason":"bounced","id":"r1"}`)
	n.want(200, "POST", path+"/apply-credits", "")
	n.standsAs(path, "paid paid 2380 open 0 3:credits 2300, 4:credits 80 | 1:payment 80, 2:credits 2300")
	n.want(200, "POST", path+"/void", `{"reason":"x","reissue":true}`)
	n.standsAs(path, "void paid 0 open 0  | 1:payment 80, 2:credits 2300, 3:credits 2300, 4:credits 80")
	n.creditIs("last", "5000 left, <nil>: granted 5000 applied -300 returned 300 applied -300 applied -80 returned 300 returned 80")
	n.agreed("void, and credits alone had paid")
}

// A note outside of an invoice that credits paid later returns to them. Then that payment stays.
func TestANoteReturnsWhatWasApplied(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":5000,"currency":"USD","id":"gift","expires_at":"2026-02-10T00:00:00Z"}`)
	n.want(200, "POST", path+"/apply-credits", "")
	money := n.want(201, "POST", path+"/credit-notes", `{"lines":[{"n":1,"amount_minor":1000}],"reason":"x","to":"outside","id":"n"}`).json["money"]
	if got := fmt.Sprint(money); got != "map[credits_minor:0 open_minor:0 outside_minor:0 returned_minor:1190]" {
		t.Error(got)
	}
	n.creditIs("gift", "3810 left, 2026-02-10T00:00:00Z: granted 5000 applied -2380 returned 1190")
	n.agreed("returned by a note")
	n.want(409, "POST", path+"/payments/1/reverse", `{"reason":"x","id":"r"}`)
}

// What is left of a credit is taken back, a part or all, once under an id.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	n, _ := owing(t)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":1000,"currency":"USD","id":"a/b"}`)
	const at = "/v1/customers/acme/credits/a%2Fb/withdraw"
	one := `{"amount_minor":400,"reason":"granted twice","id":"w1"}`
	got := n.want(200, "POST", at, one).json
	if got["id"] != "a/b" || got["left_minor"] != 600. || got["withdrawn_minor"] != 400. || got["amount_minor"] != 1000. || got["replayed"] != false {
		t.Errorf("%v", got)
	}
	if got = n.want(200, "POST", at, one).json; got["left_minor"] != 600. || got["withdrawn_minor"] != 400. || got["replayed"] != true {
		t.Errorf("%v", got)
	}
	n.refused([]wrong{
		{"POST", at, `{"amount_minor":401,"reason":"granted twice","id":"w1"}`, "422"},
		{"POST", at, `{"amount_minor":601,"reason":"x","id":"w2"}`, "409"},
		{"POST", at, `{"amount_minor":0,"reason":"x","id":"w2"}`, "422 amount_minor"},
		{"POST", at, `{"reason":"","id":"w2"}`, "422 reason"},
		{"POST", at, `{"reason":"x"}`, "422 id"},
		{"POST", "/v1/customers/acme/credits/none/withdraw", `{"reason":"x","id":"w2"}`, "404"},
		{"POST", "/v1/customers/nobody/credits/a/withdraw", `{"reason":"x","id":"w2"}`, "404"},
	})
	n.want(200, "POST", at, `{"reason":"all of it","id":"w2"}`)
	n.creditIs("a/b", "0 left, <nil>: granted 1000 withdrawn -400 withdrawn -600")
	n.want(409, "POST", at, `{"reason":"more","id":"w3"}`)
	n.agreed("withdrawn")
	testkit.Eventually(t, "both are told of", func() bool {
		return fmt.Sprint(n.told("?type=credit.withdrawn")) == "[credit.withdrawn 2026-02-01T01:00:10 amount_minor=1000 currency=USD id=a/b kind=promotional left_minor=600 withdrawn_minor=400"+
			" credit.withdrawn 2026-02-01T01:00:10 amount_minor=1000 currency=USD id=a/b kind=promotional left_minor=0 withdrawn_minor=600]"
	})
}

// spent is what a customer's only credit paid when invoices were finalized, and later; what is left of it,
// and what was withdrawn.
const spent = `
	SELECT (SELECT sum(credits_minor) FROM invoices i WHERE i.customer_id = c.id)::bigint,
		(SELECT coalesce(sum(amount_minor), 0) FROM payments p WHERE p.customer_id = c.id)::bigint,
		r.left_minor, (SELECT coalesce(-sum(amount_minor), 0) FROM credit_entries e WHERE e.customer_id = c.id AND e.kind = 'withdrawn')::bigint
	FROM customers c JOIN credits r ON r.customer_id = c.id WHERE c.key = $1`

// Two apply-credits, a withdrawal and a finalization at once spend no unit of a credit twice.
func TestCreditsAreSpentOnce(t *testing.T) {
	t.Parallel()
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	n := newNode(t)
	n.want(201, "PUT", "/v1/test-clocks/clock", `{"now":"2026-01-01T00:00:00Z"}`)
	n.want(201, "PUT", "/v1/plans/pro", `{"name":"Pro","currency":"USD","interval":"month","base_price_minor":2000,"limits":[]}`)
	for k := range rounds {
		n.want(201, "PUT", fmt.Sprint("/v1/customers/c", k), `{"name":"C","plan":"pro","billing_anchor":"2026-01-01T00:00:00","test_clock":"clock"}`)
	}
	n.settled("2026-02-01T01:00:10Z")
	n.setTo("2026-03-01T00:00:10Z") // drafts of February beside finalized invoices of January
	ids := func(customer, status string) (id string) {
		t.Helper()
		err := n.store.Pool().QueryRow(testkit.Context(t),
			`SELECT i.id::text FROM invoices i JOIN customers c ON c.id = i.customer_id WHERE c.key = $1 AND i.status = $2`, customer, status).Scan(&id)
		check(t, err)
		return id
	}
	n.settled("2026-03-01T00:00:10Z")
	for k := range rounds {
		customer := fmt.Sprint("c", k)
		january, february := ids(customer, "finalized"), ids(customer, "draft")
		n.want(201, "POST", "/v1/customers/"+customer+"/credits", `{"amount_minor":2500,"currency":"USD","id":"gift"}`)
		requests := [][2]string{
			{"/v1/invoices/" + january + "/apply-credits", ""},
			{"/v1/invoices/" + january + "/apply-credits", ""},
			{"/v1/invoices/" + february + "/finalize", ""},
			{"/v1/customers/" + customer + "/credits/gift/withdraw", `{"amount_minor":1000,"reason":"x","id":"w"}`},
		}
		var at sync.WaitGroup
		begin, status := make(chan struct{}), make([]int, len(requests))
		for r, request := range requests {
			at.Go(func() {
				<-begin
				status[r] = n.do("POST", request[0], request[1]).status
			})
		}
		close(begin)
		at.Wait()
		for r, got := range status {
			if got != 200 && got != 409 || r == 2 && got != 200 {
				t.Errorf("%s: %d", requests[r][0], got)
			}
		}
		var took, paid, left, withdrawn int64
		check(t, n.store.Pool().QueryRow(testkit.Context(t), spent, customer).Scan(&took, &paid, &left, &withdrawn))
		if took+paid+left+withdrawn != 2500 {
			t.Errorf("%s: a credit of 2500 paid %d at finalization and %d later, %d is left and %d withdrawn", customer, took, paid, left, withdrawn)
		}
	}
	n.agreed("after all")
}

// What a body says that nobody reads, such as a part that is to be paid, is refused, and nothing is done.
func TestBodiesThatNobodyReads(t *testing.T) {
	t.Parallel()
	n, path := owing(t)
	n.want(201, "POST", "/v1/customers/acme/credits", `{"amount_minor":1500,"currency":"USD","id":"sorry"}`)
	for _, body := range []string{`{"amount_minor":500}`, `[]`, `0`, `x`, strings.Repeat(" ", 70)} {
		got := n.want(422, "POST", path+"/apply-credits", body)
		if !strings.Contains(got.text, "takes no body") {
			t.Errorf("%s: %s", body, got.text)
		}
	}
	n.want(422, "DELETE", "/v1/customers/acme", `{"erase":true}`)
	n.standsAs(path, "finalized paid 0 open 2380")
	n.want(200, "POST", path+"/apply-credits", " {}\n", "Content-Type", "-")
	n.standsAs(path, "finalized paid 1500 open 880 1:credits 1500")
	n.want(409, "POST", path+"/apply-credits", "null") // which says nothing: there is no credit left
}
