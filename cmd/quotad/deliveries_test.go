package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// TestDeliveriesBesideHits: 10,000 events are delivered while callers hit, each at least once. It says what
// is left of the hits' rate. A short form has few events.
func TestDeliveriesBesideHits(t *testing.T) {
	t.Parallel()
	events, crowd, phase := 300, 4, 100*time.Millisecond
	if longForm() {
		events, crowd, phase = 10_000, 16, 5*time.Second
	}
	var seen sync.Map
	var different atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, again := seen.LoadOrStore(r.Header.Get("webhook-id"), true); !again {
			different.Add(1)
		}
	}))
	t.Cleanup(receiver.Close)
	n := start(t, "", "--webhook-allow-private")
	n.setUp(fixed("hourly", 1e12))
	n.do("POST", "/v1/webhooks", `{"url":"`+receiver.URL+`","types":["webhook.disabled"]}`).is(201)
	var charged atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range crowd {
		callers.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(pace())
				// Without a look at the answer's document, which would cost more than the hit.
				r, err := http.NewRequestWithContext(t.Context(), "POST", n.url+"/v1/hits", strings.NewReader(hitOf("acme", "requests", "")))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+testAdminKey)
				r.Header.Set("Content-Type", "application/json")
				a, err := n.client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, a.Body)
				_ = a.Body.Close()
				if a.StatusCode != 200 {
					t.Errorf("a hit beside deliveries is answered %d", a.StatusCode)
					return
				}
				charged.Add(1)
			}
		})
	}
	defer callers.Wait()
	defer cancel()
	rate := func(until func() bool) float64 {
		from, began := charged.Load(), time.Now()
		for !until() {
			time.Sleep(20 * time.Millisecond)
		}
		return float64(charged.Load()-from) / time.Since(began).Seconds()
	}
	lasts := func(d time.Duration) func() bool {
		end := time.Now().Add(d)
		return func() bool { return time.Now().After(end) }
	}
	rate(lasts(phase)) // to warm up
	alone := rate(lasts(phase))
	query[int64](t, n.databaseURL, `
		WITH written AS (INSERT INTO outbox (type, at, data) SELECT 'webhook.disabled', 0, '{"id":"wh_x","reason":"gone"}' FROM generate_series(1, `+strconv.Itoa(events)+`) RETURNING 1)
		SELECT count(*) FROM written`)
	began, late := time.Now(), lasts(max(testkit.Patience, time.Duration(events)*12*time.Millisecond))
	beside := rate(func() bool { return different.Load() == int64(events) || late() })
	if is := different.Load(); is != int64(events) {
		t.Fatalf("%d of %d events were delivered in %s", is, events, time.Since(began))
	}
	t.Logf("%d deliveries in %s; hits went on at %.2f of their rate, %.0f/s of %.0f/s", events, time.Since(began).Round(time.Millisecond), beside/alone,
		beside, alone)
}
