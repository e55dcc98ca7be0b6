package main

import (
	"fmt"
	"net/http"
	"os"
	"testing"
)

// In these tests a bridge works at one invoice at a time, so that its calls have numbers.

// modes are how a call ends at which the bridge is killed.
var modes = []string{"before", "after", "late"}

// later is what comes between the kill and the next bridge.
type later struct {
	name string
	lost bool // the state file
	day  bool // Stripe has forgotten its idempotency keys
}

var laters = []later{{name: "at once"}, {name: "without its state file", lost: true}, {name: "a day later without its state file", lost: true, day: true}}

// Whichever call the bridge is killed at, each invoice is at Stripe once in the end, with its items.
func TestKilledAtEachCallOfMaking(t *testing.T) {
	w := newWorld(t)
	w.unswept = true
	ids := w.two()
	for _, then := range laters {
		for _, mode := range modes {
			if then.day && mode == "late" {
				continue // no call is under way for a day
			}
			if testing.Short() && (mode == "before" || then.lost != (mode == "after")) {
				continue
			}
			calls := w.killEach(mode, then, nil, func(k int) {
				for _, id := range ids {
					w.same(id)
				}
				if len(w.stripe.customers) != len(ids) {
					t.Errorf("Stripe has %d customers", len(w.stripe.customers))
				}
				if t.Failed() {
					t.Fatalf("killed %s call %d, gone on %s\n%s", mode, k, then.name, w.log)
				}
			})
			t.Logf("killed %s each of %d calls, gone on %s", mode, calls, then.name)
			if calls < 15 {
				t.Errorf("only %d calls: the test does not see them", calls)
			}
		}
	}
}

// Without idempotency keys that test finds things doubled: it does tell.
func TestWithoutKeysItIsDoubled(t *testing.T) {
	w := newWorld(t)
	w.unswept = true
	ids := w.two()
	w.restless = true
	doubled := 0
	w.killEach("late", later{}, func(under http.RoundTripper) http.RoundTripper { return keyless{under} }, func(int) {
		for _, id := range ids {
			doubled += len(w.stripe.of(id)) - 1
		}
		doubled += len(w.stripe.customers) - len(ids)
	})
	if doubled < 3 { // a customer and both invoices, at least
		t.Errorf("without keys %d are doubled: the test of crashes would not see it", doubled)
	}
}

type keyless struct{ http.RoundTripper }

func (k keyless) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Idempotency-Key")
	return k.RoundTripper.RoundTrip(r)
}

// two are invoices of two customers.
func (w *world) two() []string {
	w.prepare("one", bill{base: 900, charges: []int64{100, -30}, credits: 70, taxes: []fields{{"name": "VAT", "percent": "19"}}})
	w.prepare("two", bill{currency: "JPY", base: 4000})
	return []string{w.await("one"), w.await("two")}
}

// killEach kills a bridge at each of its calls in turn, at a Stripe that knows nothing yet, has
// another go on, and calls check. It returns how many calls there are.
func (w *world) killEach(mode string, then later, between func(http.RoundTripper) http.RoundTripper, check func(k int)) (calls int) {
	mock := w.stripe.mock
	for k := 1; ; k++ {
		w.newStripe(mock)
		w.stripe.searchLag = 12 // Stripe's search is late
		s := w.settings()
		s.Workers = 1
		if between != nil {
			s.transport, s.Numbers = between(s.transport), "stripe" // Stripe refuses a number that it has
		}
		sabotage := &saboteur{mode: mode, at: k}
		if !w.crash(s, sabotage) {
			return k - 1
		}
		if then.lost {
			_ = os.Remove(s.State)
		}
		if then.day {
			w.stripe.keys, w.stripe.searchLag = map[string]answer{}, 0
		}
		w.finish(s, sabotage)
		check(k)
	}
}

// late has the call that was under way arrive, if it did not yet.
func (w *world) late(s settings, sabotage *saboteur) {
	if sabotage.held != nil {
		sabotage.under = s.transport
		sabotage.arrive()
	}
}

// finish runs the next bridge. The call that was under way arrives at the worst moment, or at the end.
func (w *world) finish(s settings, sabotage *saboteur) {
	w.t.Helper()
	sabotage.under, sabotage.kill = s.transport, nil
	s.transport = sabotage
	sabotage.at = -1
	w.drain(s)
	if sabotage.held != nil {
		sabotage.arrive()
	}
	if b := w.drain(s); len(b.notices()) > 0 && !w.restless {
		w.t.Errorf("a person is asked: %v\n%s", b.notices(), w.log)
	}
}

// Whichever call the bridge is killed at, a payment is noted once.
func TestKilledAtEachCallOfPaying(t *testing.T) {
	w := newWorld(t)
	w.unswept = true
	const most = 45
	for i := range most {
		w.prepare(fmt.Sprintf("payer-%02d", i), bill{base: int64(1000 + i)})
	}
	ids := make([]string, most)
	for i := range most {
		ids[i] = w.await(fmt.Sprintf("payer-%02d", i))
	}
	s := w.settings()
	s.Workers = 1
	w.drain(s)
	next := 0
	for _, lost := range []bool{false, true} {
		for _, mode := range modes {
			if lost && mode != "after" {
				continue // each takes a look at all invoices
			}
			for k := 1; ; k++ {
				if next == most {
					t.Fatalf("%d invoices are too few", most)
				}
				id, amount := ids[next], int64(1000+next)
				next++
				w.stripe.events = nil
				w.stripe.collect(t, id)
				sabotage := &saboteur{mode: mode, at: k}
				killed := w.crash(s, sabotage)
				if killed && lost {
					_ = os.Remove(s.State)
				}
				w.finish(s, sabotage)
				q := w.read(id)
				if q.Status != statusPaid || len(q.Payments) != 1 || q.Payments[0].AmountMinor != amount {
					t.Fatalf("killed %s call %d, state file lost: %v: the invoice is %s, and its payments are %v\n%s", mode, k, lost, q.Status, q.Payments, w.log)
				}
				if !killed {
					t.Logf("killed %s each of %d calls, state file lost: %v", mode, k-1, lost)
					if k < 5 {
						t.Errorf("only %d calls: the test does not see them", k-1)
					}
					break
				}
			}
		}
	}
	for _, id := range ids[:next] {
		w.same(id)
	}
}

// Many invoices at once, some of one customer, and kills at any time: each is at Stripe once.
func TestKilledWhileMuchIsUnderWay(t *testing.T) {
	w := newWorld(t)
	w.unswept = true
	var ids []string
	for i := range 12 {
		w.prepare(fmt.Sprintf("many-%d", i), bill{base: int64(1000 + i)})
	}
	for i := range 12 {
		ids = append(ids, w.await(fmt.Sprintf("many-%d", i)))
	}
	// A second invoice of each customer.
	for i := range 12 {
		w.do("POST", fmt.Sprintf("/v1/customers/many-%d/charges", i), fields{"description": "late", "amount_minor": 50, "currency": "EUR", "id": "late"}, nil)
		w.do("DELETE", fmt.Sprintf("/v1/customers/many-%d", i), nil, nil)
	}
	for i := range 12 {
		for second := ""; second == "" || second == ids[i]; {
			second = w.told(fmt.Sprintf("many-%d", i), "invoice.finalized")
			if second != ids[i] {
				ids = append(ids, second)
			}
		}
	}
	mock := w.stripe.mock
	for round, mode := range []string{"after", "late", "after", "late"} {
		w.newStripe(mock)
		w.stripe.searchLag = 12
		s := w.settings()
		for k := 10 + round; ; k += 23 { // the next bridge is killed further on
			sabotage := &saboteur{mode: mode, at: k}
			killed := w.crash(s, sabotage)
			w.late(s, sabotage)
			if !killed {
				break
			}
		}
		b := w.drain(s)
		for _, id := range ids {
			if q := w.read(id); q.OpenMinor > 0 {
				w.same(id)
			}
		}
		if len(w.stripe.customers) != 12 || len(b.notices()) > 0 {
			t.Errorf("Stripe has %d customers, and notices are %v", len(w.stripe.customers), b.notices())
		}
		if t.Failed() {
			t.Fatalf("killed %s calls\n%s", mode, w.log)
		}
	}
}

// Whichever call the bridge is killed at, what lowers or ends an invoice is done once at Stripe.
func TestKilledAtEachCallOfLowering(t *testing.T) {
	w := newWorld(t)
	w.unswept = true
	s := w.settings()
	s.Workers = 1
	kinds := []struct {
		name, event string
		do          func(id string)
		status      string
		left        int64
		notes       int
	}{
		{"lowered", "invoice.credited", func(id string) { w.note(id, 400) }, "open", 600, 1},
		{"elsewhere", "invoice.paid", func(id string) { w.pay(id, 1000) }, "paid", 0, 0},
		{"void", "invoice.void", func(id string) { w.do("POST", "/v1/invoices/"+id+"/void", fields{"reason": "wrong"}, nil) }, "void", 1000, 0},
	}
	const most = 12
	modes := modes[1:]
	if testing.Short() {
		modes = modes[1:]
	}
	ids := map[string]string{}
	name := func(kind, mode string, k int) string { return fmt.Sprintf("%s-%s-%d", kind, mode, k) }
	all := func(f func(customer string)) {
		for _, kind := range kinds {
			for _, mode := range modes {
				for k := 1; k <= most; k++ {
					f(name(kind.name, mode, k))
				}
			}
		}
	}
	all(func(customer string) { w.prepare(customer, bill{base: 1000}) })
	all(func(customer string) { ids[customer] = w.await(customer) })
	w.drain(s)
	for _, kind := range kinds {
		for _, mode := range modes {
			for k := 1; ; k++ {
				if k > most {
					t.Fatalf("%s makes more than %d calls", kind.name, most)
				}
				customer := name(kind.name, mode, k)
				id := ids[customer]
				kind.do(id)
				w.told(customer, kind.event)
				w.stripe.events, w.stripe.notes = nil, nil
				sabotage := &saboteur{mode: mode, at: k}
				killed := w.crash(s, sabotage)
				w.finish(s, sabotage)
				in := w.stripe.of(id)[0]
				if in["status"] != kind.status || in["amount_remaining"] != kind.left || len(w.stripe.notes) != kind.notes {
					t.Fatalf("%s, killed %s call %d: Stripe has %v, %v left, and notes %v\n%s", kind.name, mode, k, in["status"], in["amount_remaining"],
						w.stripe.notes, w.log)
				}
				if q := w.read(id); kind.name == "elsewhere" && (len(q.Payments) != 1 || q.PaidMinor != 1000) {
					t.Fatalf("payments are %v", q.Payments)
				}
				if !killed {
					t.Logf("%s, killed %s each of %d calls", kind.name, mode, k-1)
					break
				}
			}
		}
	}
}
