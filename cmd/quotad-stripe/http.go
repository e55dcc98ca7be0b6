package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"
)

const (
	maxWebhook = 1 << 20         // bytes; an event contains an invoice with its first lines
	webhookOld = 5 * time.Minute // the time for which a signature is valid
	silentFor  = 5 * time.Minute // without a response of quotad or Stripe for this time, the bridge is unhealthy
	stopWait   = 10 * time.Second
)

// listen serves webhooks, health and metrics until the returned function is called.
func (b *bridge) listen(ctx context.Context) (ended func(), err error) {
	if b.Listen == "" {
		return func() {}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", b.Listen)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: b.routes(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 45 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			b.log.Error("webhooks are not served any more: Stripe is asked alone", "error", err)
		}
	}()
	b.log.Info("webhooks are served", "address", l.Addr().String())
	if b.listening != nil {
		b.listening <- l.Addr().String()
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // clients that are cut off send their webhooks again
		}
		<-done
	}, nil
}

func (b *bridge) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhook", b.webhook)
	mux.HandleFunc("GET /healthz", b.healthz)
	mux.HandleFunc("GET /metrics", b.metrics)
	return mux
}

// webhook queues the invoice of one of Stripe's events and saves the state to the disk before it responds.
// Stripe resends the event unless the status is 2xx. An event that arrives twice only queues the invoice twice.
func (b *bridge) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebhook))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		http.Error(w, "the body is larger than 1 MiB: an event of Stripe's is not", http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	event, err := webhook.ConstructEventWithOptions(body, r.Header.Get("Stripe-Signature"), b.WebhookSecret, webhook.ConstructEventOptions{
		Tolerance: webhookOld, IgnoreAPIVersionMismatch: true, // ids and metadata are the same in all API versions
	})
	if err != nil {
		b.unsigned.Add(1)
		if b.complaints.Allow() {
			b.log.Warn("a webhook was refused", "from", r.RemoteAddr, "error", err, "refused_so_far", b.unsigned.Load())
		}
		http.Error(w, "the signature does not fit: is --webhook-secret that of this endpoint, and the clock right?", http.StatusBadRequest)
		return
	}
	if event.Livemode != (b.mode() == modeLive) {
		http.Error(w, "the event is of Stripe's other mode", http.StatusBadRequest)
		return
	}
	if err = b.hear(r.Context(), &event); err == nil {
		err = b.store.save()
	}
	if err != nil {
		b.log.Error("a webhook could not be noted: Stripe sends it again", "event", event.ID, "error", plain(err))
		http.Error(w, "it could not be noted", http.StatusInternalServerError)
		return
	}
	select {
	case b.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
	w.WriteHeader(http.StatusNoContent)
}

// standing is the state of the bridge in numbers.
type standing struct {
	Status  string `json:"status"` // ok, attention, or unreachable
	Cursor  int64  `json:"cursor"`
	Waiting int    `json:"waiting"` // invoices to be settled, including failing ones
	Failing int    `json:"failing"` // invoices whose last try failed
	Open    int    `json:"open"`    // invoices that Stripe still has to collect
	Notices int    `json:"notices"` // notices that a person must handle
	Quotad  int64  `json:"quotad_silent_seconds"`
	Stripe  int64  `json:"stripe_silent_seconds"`
}

func (b *bridge) standing(now time.Time) (st standing) {
	b.store.read(func(s *state) {
		st = standing{Status: "ok", Cursor: s.Cursor, Waiting: len(s.Work), Open: len(s.Open), Notices: len(s.Notices)}
		for _, j := range s.Work {
			if j.Tries > 0 {
				st.Failing++
			}
		}
	})
	st.Quotad, st.Stripe = now.Unix()-b.quotadOK.Load(), now.Unix()-b.stripeOK.Load()
	if st.Failing > 0 || st.Notices > 0 {
		st.Status = "attention"
	}
	if max(st.Quotad-int64(b.Poll.Seconds()), st.Stripe-int64(b.StripePoll.Seconds())) > int64(silentFor.Seconds()) {
		st.Status = "unreachable"
	}
	return st
}

// healthz returns 503 while quotad or Stripe does not respond. Notices for a person do not affect the status,
// because they are no reason to restart the bridge.
func (b *bridge) healthz(w http.ResponseWriter, _ *http.Request) {
	st := b.standing(time.Now())
	w.Header().Set("Content-Type", "application/json")
	if st.Status == "unreachable" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(st) // an error means that the client has disconnected
}

func (b *bridge) metrics(w http.ResponseWriter, _ *http.Request) {
	st := b.standing(time.Now())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, m := range []struct {
		name, kind, help string
		value            int64
	}{
		{"event_cursor", "gauge", "The last event of quotad's that was read.", st.Cursor},
		{"invoices_waiting", "gauge", "Invoices to be looked at.", int64(st.Waiting)},
		{"invoices_failing", "gauge", "Invoices whose last try failed.", int64(st.Failing)},
		{"invoices_open", "gauge", "Invoices that Stripe still collects.", int64(st.Open)},
		{"notices", "gauge", "What waits for a person.", int64(st.Notices)},
		{"quotad_silent_seconds", "gauge", "Since quotad answered last.", st.Quotad},
		{"stripe_silent_seconds", "gauge", "Since Stripe answered last.", st.Stripe},
		{"invoices_made_total", "counter", "Invoices that were finalized at Stripe since the start.", b.made.Load()},
		{"payments_noted_total", "counter", "Payments that were noted in quotad since the start.", b.paid.Load()},
		{"webhooks_refused_total", "counter", "Webhooks with a bad signature since the start.", b.unsigned.Load()},
		{"failures_total", "counter", "Tries that failed since the start.", b.failed.Load()},
	} {
		name := "quotad_stripe_" + m.name
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", name, m.help, name, m.kind, name, m.value)
	}
}
