package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"quotad/internal/testkit"
)

// serve runs a bridge as the program does, and returns the address of its listener.
func (w *world) serve(s settings) (address string) {
	w.t.Helper()
	listening := make(chan string, 1)
	s.Listen, s.listening = "127.0.0.1:0", listening
	b, err := open(w.ctx, s, w.logger())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.serve(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the bridge ended: %v\n%s", err, w.log)
		}
	})
	return "http://" + <-listening
}

// send posts an event as Stripe does, signed by a secret at a time.
func (w *world) send(address string, event any, secret string, at time.Time) (status int) {
	w.t.Helper()
	body, ok := event.([]byte)
	if !ok {
		var err error
		if body, err = json.Marshal(event); err != nil {
			w.t.Fatal(err)
		}
	}
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: at})
	r, err := http.NewRequestWithContext(w.ctx, "POST", address+"/webhook", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Stripe-Signature", signed.Header)
	response, err := w.http.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func (w *world) get(address string) (status int, body string) {
	w.t.Helper()
	response, err := w.http.Get(address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(raw)
}

// A webhook of a payment is noted at once, however often it comes, and no other body is believed.
func TestWebhooks(t *testing.T) {
	w := newWorld(t)
	id := w.invoice("hooked", bill{base: 1000})
	s := w.settings()
	s.StripePoll = time.Hour // only the webhook brings it
	address := w.serve(s)
	testkit.Eventually(t, "the invoice is at Stripe", func() bool {
		found := w.stripe.of(id)
		return len(found) == 1 && found[0]["status"] == "open"
	})
	now := time.Now()
	// Not paid yet, and the event says so: the bridge reads the invoice, and believes no event.
	var forged object
	w.stripe.with(t, id, func(in object) {
		forged = object{
			"id": "evt_x", "object": "event", "type": "invoice.paid", "livemode": false,
			"data": object{"object": object{"id": in["id"], "object": "invoice", "metadata": in["metadata"], "amount_paid": 1000, "status": "paid"}},
		}
	})
	if got := w.send(address, forged, "whsec_test", now); got != 204 {
		t.Errorf("a signed event is answered %d", got)
	}
	testkit.Eventually(t, "the bridge has looked at the invoice", func() bool {
		_, body := w.get(address + "/metrics")
		return strings.Contains(body, "\nquotad_stripe_invoices_waiting 0\n")
	})
	event := w.stripe.collect(t, id)
	unknown := object{
		"id": "evt_u", "object": "event", "type": "invoice.paid", "livemode": false,
		"data": object{"object": object{"id": "in_77", "metadata": object{metaInvoice: "00000000-0000-7000-8000-000000000000"}}},
	}
	others := object{
		"id": "evt_o", "object": "event", "type": "invoice.paid", "livemode": false,
		"data": object{"object": object{"id": "in_78", "metadata": object{}}},
	}
	strange := object{
		"id": "evt_s", "object": "event", "type": "invoice.paid", "livemode": false,
		"data": object{"object": object{"id": "in_79", "metadata": object{metaInvoice: "../../customers"}}},
	}
	live := object{"id": "evt_l", "object": "event", "type": "invoice.paid", "livemode": true, "data": event["data"]}
	for _, c := range []struct {
		what   string
		event  any
		secret string
		at     time.Time
		status int
	}{
		{"a wrong secret", event, "whsec_other", now, 400},
		{"an old signature", event, "whsec_test", now.Add(-6 * time.Minute), 400},
		{"no JSON", []byte("{"), "whsec_test", now, 400},
		{"a huge body", []byte(`{"id":"` + strings.Repeat("x", maxWebhook) + `"}`), "whsec_test", now, 413},
		{"the other mode", live, "whsec_test", now, 400},
		{"an invoice that is none of quotad's", others, "whsec_test", now, 204},
		{"metadata that is no id", strange, "whsec_test", now, 204},
		{"an invoice that quotad does not know", unknown, "whsec_test", now, 204},
	} {
		if got := w.send(address, c.event, c.secret, c.at); got != c.status {
			t.Errorf("%s is answered %d, not %d", c.what, got, c.status)
		}
	}
	for range 40 {
		w.send(address, event, "whsec_other", now)
	}
	if lines := strings.Count(w.log.String(), "a webhook was refused"); lines < 10 || lines > 20 {
		t.Errorf("%d lines of the log are about 43 bad signatures", lines)
	}
	if _, body := w.get(address + "/metrics"); !strings.Contains(body, "\nquotad_stripe_webhooks_refused_total 43\n") {
		t.Errorf("metrics do not count bad signatures:\n%s", body)
	}
	if err := os.Mkdir(s.State+".new", 0o700); err != nil { // the state file cannot be written
		t.Fatal(err)
	}
	if got := w.send(address, unknown, "whsec_test", now); got != 500 {
		t.Errorf("an event that cannot be noted is answered %d", got)
	}
	if err := os.Remove(s.State + ".new"); err != nil {
		t.Fatal(err)
	}
	if q := w.read(id); q.PaidMinor != 0 {
		t.Fatalf("%d are noted, though no event has said so", q.PaidMinor)
	}
	for range 3 {
		if got := w.send(address, event, "whsec_test", now); got != 204 {
			t.Errorf("the event is answered %d", got)
		}
	}
	testkit.Eventually(t, "the payment is noted", func() bool { return w.read(id).Status == statusPaid })
	testkit.Eventually(t, "the unknown invoice is told", func() bool {
		_, body := w.get(address + "/metrics")
		return strings.Contains(body, "\nquotad_stripe_notices 1\n") && strings.Contains(body, "\nquotad_stripe_invoices_waiting 0\n") &&
			strings.Contains(body, "\nquotad_stripe_payments_noted_total 1\n")
	})
	if q := w.read(id); len(q.Payments) != 1 || *q.Payments[0].Reference != "Stripe "+w.stripe.of(id)[0]["id"].(string) {
		t.Errorf("payments are %+v", q.Payments)
	}
	if status, body := w.get(address + "/healthz"); status != 200 || !strings.Contains(body, `"status":"attention"`) || !strings.Contains(body, `"failing":0`) {
		t.Errorf("health is %d %s", status, body)
	}
	if status, _ := w.get(address + "/webhook"); status != 405 {
		t.Errorf("GET of the webhook is %d", status)
	}
	if !strings.Contains(w.log.String(), "quotad has no invoice 00000000-0000-7000-8000-000000000000") {
		t.Errorf("the log does not tell of the unknown invoice:\n%s", w.log)
	}
}
