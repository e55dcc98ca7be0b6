package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveTest serves a handler and returns its address.
func serveTest(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func openLoop(rate float64, conns int) *openRun {
	return &openRun{
		template: templateOf(&row{set: "two", load: load{pick: uniform}}, "secret", "run"),
		rate:     rate, conns: conns, took: time.Second, seed: 1,
	}
}

// achieved does what measures until the rate was achieved: other work on the machine may keep
// it from that, which is no fault of the load maker's.
func achieved(t *testing.T, measure func() error) {
	t.Helper()
	for range 10 {
		err := measure()
		if err == nil {
			return
		}
		if t.Log(err); !errors.Is(err, errRate) {
			break
		}
	}
	t.Fatal("there is nothing to look at")
}

// A server that stalls is charged with all the requests that were meant to start
// meanwhile, not only with the one that it held.
func TestStallIsNotOmitted(t *testing.T) {
	achieved(t, func() error {
		var n atomic.Int64
		address := serveTest(t, func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) == 50 {
				time.Sleep(400 * time.Millisecond)
			}
			w.WriteHeader(200)
		})
		got, err := openLoop(200, 1).run(context.Background(), address)
		if err != nil {
			return err
		}
		if got.TotalCount() != 200 {
			t.Errorf("%d latencies of 200 requests", got.TotalCount())
		}
		// At 200 a second, 80 begin within 400 ms, and wait from 400 ms down to nothing.
		if p80, most := got.ValueAtQuantile(80), got.Max(); p80 < 100_000 || most < 390_000 {
			t.Errorf("p80 %d µs, at most %d µs", p80, most)
		}
		return nil
	})
}

// Requests go out at their instants, evenly, and over idle connections.
func TestPace(t *testing.T) {
	achieved(t, func() error {
		var n atomic.Int64
		address := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { n.Add(1); w.WriteHeader(200) })
		before := time.Now()
		got, err := openLoop(500, 8).run(context.Background(), address)
		if err != nil {
			return err
		}
		if n.Load() != 500+8 || got.TotalCount() != 500 {
			t.Errorf("%d requests with the first ones of 8 connections, %d latencies", n.Load(), got.TotalCount())
		}
		if took := time.Since(before); took < 990*time.Millisecond {
			t.Errorf("a second's load was done in %s", took)
		}
		return nil
	})
}

// What a server does once for a connection is done before a run begins.
func TestNewConnectionsAreNotMeasured(t *testing.T) {
	const conns, measured = 8, 100
	achieved(t, func() error {
		var known sync.Map
		var fresh, all atomic.Int64
		var done atomic.Pointer[time.Time] // when the server was done with the last new connection
		address := serveTest(t, func(w http.ResponseWriter, r *http.Request) {
			all.Add(1)
			if _, again := known.LoadOrStore(r.RemoteAddr, true); !again {
				time.Sleep(20 * time.Millisecond) // what the server does once
				if fresh.Add(1) == conns {
					done.Store(new(time.Now()))
				}
			}
			w.WriteHeader(200)
		})
		o := openLoop(measured, conns)
		got, err := o.run(context.Background(), address)
		if err != nil {
			return err
		}
		if all.Load() != conns+measured || fresh.Load() != conns || got.TotalCount() != measured {
			t.Errorf("%d requests on %d connections, %d latencies", all.Load(), fresh.Load(), got.TotalCount())
		} else if at := done.Load(); o.began.Before(*at) {
			t.Errorf("the run began %s before the server was done with new connections", at.Sub(o.began))
		}
		return nil
	})
}

func TestRateNotAchieved(t *testing.T) {
	t.Parallel()
	address := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { time.Sleep(20 * time.Millisecond); w.WriteHeader(200) })
	if _, err := openLoop(100, 1).run(context.Background(), address); !errors.Is(err, errRate) {
		t.Errorf("50 a second are possible, 100 were asked for: %v", err)
	}
}

func TestOpenLoopLooksAtAnswers(t *testing.T) {
	t.Parallel()
	address := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) })
	o := openLoop(100, 2)
	if _, err := o.run(context.Background(), address); !errors.Is(err, errAnswers) {
		t.Errorf("refusals where none should be: %v", err)
	}
	achieved(t, func() error {
		o := openLoop(100, 2)
		o.failing = true
		_, err := o.run(context.Background(), address)
		return err
	})
}

func TestOpenLoopEnds(t *testing.T) {
	t.Parallel()
	address := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	o := openLoop(100, 2)
	o.took = time.Hour
	if _, err := o.run(ctx, address); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it was told to stop: %v", err)
	}
	if _, err := openLoop(100, 2).run(context.Background(), "127.0.0.1:1"); err == nil {
		t.Error("nobody listens there")
	}
}
