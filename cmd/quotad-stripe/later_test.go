package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// pay notes a payment in quotad, from elsewhere.
func (w *world) pay(id string, minor int64) {
	w.t.Helper()
	w.do("POST", "/v1/invoices/"+id+"/pay", fields{"amount_minor": minor, "reference": "bank", "id": fmt.Sprintf("bank-%d", minor)}, nil)
}

func (w *world) note(id string, minor int64) {
	w.t.Helper()
	w.do("POST", "/v1/invoices/"+id+"/credit-notes", fields{
		"lines": []fields{{"n": 1, "amount_minor": minor}}, "reason": "sorry", "to": "credits",
		"id": fmt.Sprintf("note-%d", minor),
	}, nil)
}

// What happens to an invoice in quotad after Stripe has it, and to one at Stripe by other hands.
func TestWhatComesLater(t *testing.T) {
	w := newWorld(t)
	s := w.settings()
	for _, c := range []struct {
		name   string
		early  func(id string) // before the bridge knows the invoice
		later  func(id string) // once it is at Stripe
		event  string          // of quotad's, that it waits for
		status string          // at Stripe, in the end
		left   int64           // what Stripe still collects
		quotad string          // status there
		paid   int64           // noted there
		notice string
	}{
		{
			name: "void", later: func(id string) { w.do("POST", "/v1/invoices/"+id+"/void", fields{"reason": "wrong"}, nil) }, event: "invoice.void",
			status: "void", left: 1000, quotad: "void",
		},
		{name: "credited", later: func(id string) { w.note(id, 1000) }, event: "invoice.credited", status: "void", left: 1000, quotad: "credited"},
		{name: "credited in part", later: func(id string) { w.note(id, 400) }, event: "invoice.credited", status: "open", left: 600, quotad: "finalized"},
		{name: "paid elsewhere", later: func(id string) { w.pay(id, 1000) }, event: "invoice.paid", status: "paid", quotad: "paid", paid: 1000},
		{name: "paid in part", later: func(id string) { w.pay(id, 300) }, status: "open", left: 700, quotad: "finalized", paid: 300},
		{name: "paid in part before", early: func(id string) { w.pay(id, 300) }, status: "open", left: 700, quotad: "finalized", paid: 300},
		{name: "void before", early: func(id string) { w.do("POST", "/v1/invoices/"+id+"/void", fields{"reason": "wrong"}, nil) }, quotad: "void"},
		{name: "credited and then paid", later: func(id string) {
			w.note(id, 400)
			w.told("credited and then paid", "invoice.credited")
			w.drain(s)
			w.stripe.collect(t, id)
		}, status: "paid", quotad: "paid", paid: 600},
		{name: "paid twice", later: func(id string) {
			w.pay(id, 1000)
			w.stripe.collect(t, id)
		}, event: "invoice.paid", status: "paid", quotad: "paid", paid: 1000, notice: "payment"},
		{name: "paid at both sides at once", later: func(id string) {
			w.pay(id, 1000)
			w.stripe.refuse = func(r *http.Request, _ url.Values) *answer { // the customer pays between the mark and this
				if !strings.HasSuffix(r.URL.Path, "/pay") {
					return nil
				}
				in := byID(w.stripe.invoices, strings.Split(r.URL.Path, "/")[3])
				if in["charged"] = true; in["status"] == "open" {
					w.stripe.settle(in)
				}
				a := wrong("Invoice is already paid")
				return &a
			}
		}, event: "invoice.paid", status: "paid", quotad: "paid", paid: 1000, notice: "twice"},
		{name: "voided at Stripe", later: func(id string) {
			w.stripe.with(t, id, func(in object) { in["status"] = "void"; w.stripe.tell("invoice.voided", in) })
		}, status: "void", left: 1000, quotad: "finalized", notice: "voided"},
		{name: "given up at Stripe", later: func(id string) {
			w.stripe.with(t, id, func(in object) {
				in["status"] = "uncollectible"
				w.stripe.tell("invoice.marked_uncollectible", in)
			})
		}, status: "uncollectible", left: 1000, quotad: "finalized", notice: "uncollectible"},
		{name: "given back at Stripe", later: func(id string) {
			w.stripe.collect(t, id)
			w.stripe.with(t, id, func(in object) {
				w.stripe.tell("charge.refunded", object{
					"id": "ch_1", "object": "charge", "amount_refunded": 1000, "currency": "eur",
					"payment_intent": "pi_" + strings.TrimPrefix(in["id"].(string), "in_"),
				})
			})
		}, status: "paid", quotad: "paid", paid: 1000, notice: "charge.refunded"},
		{name: "covered by a balance", later: func(id string) {
			w.stripe.with(t, id, func(in object) {
				in["amount_remaining"] = int64(0)
				w.stripe.settle(in)
			})
		}, status: "paid", quotad: "finalized", notice: "unpaid"},
		{name: "lowered at Stripe", later: func(id string) {
			w.stripe.with(t, id, func(in object) { in["amount_remaining"] = int64(900) })
		}, status: "open", left: 900, quotad: "finalized", notice: "below"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.t = t
			id := w.invoice(c.name, bill{base: 1000})
			if c.early != nil {
				c.early(id)
				if c.name == "void before" {
					w.told(c.name, "invoice.void")
				}
			}
			w.drain(s)
			if c.later != nil {
				c.later(id)
			}
			if c.event != "" {
				w.told(c.name, c.event)
			}
			before := w.drain(s).notices()
			w.stripe.refuse = nil
			b := w.drain(s) // starts look at all that is open, so nothing may happen twice
			if got := b.notices(); len(got) != len(before) {
				t.Errorf("the notices grow from %v to %v", before, got)
			}
			q := w.read(id)
			if q.Status != c.quotad || q.PaidMinor != c.paid {
				t.Errorf("in quotad it is %s, and %d are paid", q.Status, q.PaidMinor)
			}
			found := w.stripe.of(id)
			if c.status == "" {
				if len(found) != 0 {
					t.Errorf("Stripe has %v", found)
				}
				return
			}
			if len(found) != 1 || found[0]["status"] != c.status || found[0]["amount_remaining"] != c.left {
				t.Errorf("Stripe has %v of it, and should have %s with %d left", found, c.status, c.left)
			}
			has := slices.ContainsFunc(b.store.state.Notices, func(n notice) bool { return n.Invoice == id && strings.HasPrefix(n.ID, c.notice) })
			if c.notice != "" && !has || c.notice == "" && slices.ContainsFunc(b.store.state.Notices, func(n notice) bool { return n.Invoice == id }) {
				t.Errorf("notices are %v", b.store.state.Notices)
			}
		})
	}
}

// One invoice that Stripe refuses holds up no other one, and is made once Stripe takes it.
func TestOneRefusedHoldsUpNone(t *testing.T) {
	w := newWorld(t)
	bad, good := w.invoice("bad", bill{base: 1000}), w.invoice("good", bill{base: 2000})
	w.stripe.refuse = func(r *http.Request, form url.Values) *answer {
		if r.Method == "POST" && r.URL.Path == "/v1/invoices" && form.Get("metadata[quotad_invoice]") == bad {
			a := wrong("You cannot combine currencies on a single customer")
			return &a
		}
		return nil
	}
	s := w.settings()
	w.restless = true
	b := w.drain(s)
	w.same(good)
	if st := b.standing(b.saved); st.Failing != 1 || st.Status == "ok" {
		t.Errorf("the bridge stands as %+v", st)
	}
	if strings.Contains(w.log.String(), "Buyer of") || strings.Contains(w.log.String(), "sk_test") || strings.Contains(w.log.String(), adminKey) {
		t.Errorf("the log has secrets or people in it:\n%s", w.log)
	}
	w.stripe.refuse = nil // Stripe would give the same refusal for a day to the same key
	w.restless = false
	b, err := open(w.ctx, s, w.logger())
	if err != nil {
		t.Fatal(err)
	}
	defer b.store.close()
	b.store.change(func(s *state) { s.Work[bad].Next = b.saved })
	w.rounds(b)
	w.same(bad)
}

// A draft that somebody has changed is not finalized. Deleted at Stripe, it is made again.
func TestDraftOfOtherHands(t *testing.T) {
	w := newWorld(t)
	id := w.invoice("edited", bill{base: 1000})
	s := w.settings()
	w.stripe.refuse = func(r *http.Request, _ url.Values) *answer {
		if strings.HasSuffix(r.URL.Path, "/finalize") {
			a := wrong("not now")
			return &a
		}
		return nil
	}
	w.restless = true
	w.drain(s)
	w.stripe.refuse, w.restless = nil, false
	w.stripe.with(t, id, func(in object) {
		at := in["id"].(string)
		w.stripe.lines[at] = append(w.stripe.lines[at], object{
			"id": "il_x", "object": "line_item", "amount": int64(5), "description": "by hand",
			"metadata": map[string]string{},
		})
		w.stripe.sums(in, 0)
	})
	s.pause = 0 // the next look is a sweep's
	b, err := open(w.ctx, s, w.logger())
	if err != nil {
		t.Fatal(err)
	}
	w.rounds(b)
	b.store.close()
	if in := w.stripe.of(id)[0]; in["status"] != "draft" || !slices.Contains(b.notices(), "total") {
		t.Fatalf("the draft is %s, and notices are %v", in["status"], b.notices())
	}
	w.stripe.with(t, id, func(in object) { in["deleted"], in["number"] = true, "" })
	w.drain(w.again(s))
	w.same(id)
}

// What carries an invoice's id at Stripe, and was not made for it, is neither noted as paid nor lowered.
func TestFoundIsCompared(t *testing.T) {
	for _, c := range []struct {
		what   string
		change object
	}{
		{"another currency", object{"currency": "jpy"}},
		{"more than was due", object{"total": int64(1001), "amount_due": int64(1001), "amount_remaining": int64(1001)}},
	} {
		w := newWorld(t)
		id := w.invoice("copied", bill{base: 1000})
		w.drain(w.settings())
		w.stripe.with(t, id, func(in object) { maps.Copy(in, c.change) })
		w.stripe.collect(t, id)
		b := w.drain(w.settings())
		if q := w.read(id); q.PaidMinor != 0 || !slices.Contains(b.notices(), "foreign") {
			t.Errorf("%s: %d are noted, and notices are %v", c.what, q.PaidMinor, b.notices())
		}
	}
}

// again is a bridge's settings with pauses as tests have them.
func (w *world) again(s settings) settings {
	s.pause = w.settings().pause
	return s
}

// By a key of Stripe's test mode only customers on test clocks are sent, unless the bridge is told otherwise. By a live
// key they are never sent.
func TestWhoIsSentByWhichKey(t *testing.T) {
	w := newWorld(t)
	w.do("PUT", "/v1/test-clocks/lab", fields{"now": "2031-01-01T00:00:00Z"}, nil)
	id := w.invoice("clocked", bill{base: 1000, clock: "lab"})
	real := w.invoice("real", bill{base: 1000})
	s := w.settings()
	s.TestReal = false
	if w.drain(s); len(w.stripe.of(real)) != 0 || len(w.stripe.customers) != 1 {
		t.Error("the invoice of a customer in real time is in Stripe's test mode")
	}
	w.same(id)
	w.drain(w.settings())
	w.same(real)
	for _, c := range []struct {
		key           string
		told          bool
		onClock, real bool
	}{
		{"sk_live_1", false, false, true},
		{"rk_live_1", false, false, true},
		{"sk_test_1", false, true, false},
		{"rk_test_1", true, true, true},
	} {
		if of := (settings{StripeKey: c.key, TestReal: c.told}); of.sends(true) != c.onClock || of.sends(false) != c.real {
			t.Errorf("by %s, told %t: on test clocks %t, others %t", c.key, c.told, of.sends(true), of.sends(false))
		}
	}
}

// An invoice to be sent has quotad's due date, or is due at once where that is over, and Stripe's own
// number where it is told so.
func TestSentInvoices(t *testing.T) {
	w := newWorld(t)
	w.do("PUT", "/v1/test-clocks/past", fields{"now": "2020-01-01T00:00:00Z"}, nil)
	ids := []string{w.invoice("now", bill{base: 1000}), w.invoice("then", bill{base: 1000, clock: "past"})}
	s := w.settings()
	s.Collection, s.Numbers = "send_invoice", "stripe"
	w.drain(s)
	for i, id := range ids {
		w.same(id)
		due, days := fmt.Sprint(w.read(id).DueAt.Unix()), ""
		if i == 1 {
			due, days = "", "0"
		}
		if in := w.stripe.of(id)[0]; in["asked_due_date"] != due || in["days_until_due"] != days || in["collection_method"] != "send_invoice" || in["number"] != "" {
			t.Errorf("the invoice is due %v, %v days, by %v, with number %q", in["asked_due_date"], in["days_until_due"], in["collection_method"], in["number"])
		}
	}
}
