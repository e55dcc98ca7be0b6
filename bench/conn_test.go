package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestParseAnswer(t *testing.T) {
	t.Parallel()
	const one = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nabc"
	for n := range one { // in pieces of any size
		if _, _, size, err := parseAnswer([]byte(one[:n])); size != 0 || err != nil {
			t.Errorf("%q is taken for an answer: %v", one[:n], err)
		}
	}
	status, body, size, err := parseAnswer([]byte(one + "HTTP/1.1 4"))
	if status != 200 || string(body) != "abc" || size != len(one) || err != nil {
		t.Errorf("%d %q %d %v", status, body, size, err)
	}
	status, body, _, err = parseAnswer([]byte("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"))
	if status != 429 || len(body) != 0 || err != nil {
		t.Errorf("%d %q %v", status, body, err)
	}
	for _, text := range []string{
		"\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("a", maxAnswer),
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n",
	} {
		if _, _, _, err := parseAnswer([]byte(text)); !errors.Is(err, errAnswer) {
			t.Errorf("%.50q: %v", text, err)
		}
	}
}

// Nodes that were started for a row have met each customer before it, once.
func TestMeetAll(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	met := [2]map[string]int{{}, {}}
	b := &bench{service: &service{}}
	for i := range met {
		address := serveTest(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			met[i][string(body)]++
			mu.Unlock()
			w.WriteHeader(http.StatusOK)
		})
		b.service.nodes = append(b.service.nodes, &node{child: &child{}, address: address})
	}
	if err := b.meetAll(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	for i := range met {
		if len(met[i]) != sets["two"].customers {
			t.Errorf("node %d has met %d customers", i, len(met[i]))
		}
		for body, times := range met[i] {
			if times != 1 {
				t.Fatalf("node %d was sent %d times %s", i, times, body)
			}
		}
	}
}

// Each reservation is committed, by its own id, before the next.
func TestPairs(t *testing.T) {
	t.Parallel()
	var made, committed, wrong atomic.Int64
	address := serveTest(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/reservations" {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"id":"rsv_%d","customer":"x"}`, made.Add(1))
			return
		}
		var id int64
		if _, err := fmt.Sscanf(r.URL.Path, "/v1/reservations/rsv_%d/commit", &id); err != nil || id > made.Load() {
			wrong.Add(1)
		}
		committed.Add(1)
		w.WriteHeader(http.StatusOK)
	})
	made0 := templateOf(&row{set: "two", load: load{pick: uniform, reserve: true}}, "secret", "run")
	p := &pairs{template: made0, address: address, key: "secret", conns: 4}
	got, err := p.run(context.Background(), 200*time.Millisecond)
	if err != nil || wrong.Load() > 0 || int64(got.operations) != made.Load() || made.Load() != committed.Load() || got.operations == 0 {
		t.Errorf("%+v %v: %d made, %d committed, %d of them wrong", got, err, made.Load(), committed.Load(), wrong.Load())
	}
	refusing := serveTest(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) })
	p.address = refusing
	if _, err := p.run(context.Background(), 200*time.Millisecond); !errors.Is(err, errAnswers) {
		t.Errorf("refused reservations: %v", err)
	}
}
