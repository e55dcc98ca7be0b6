package main

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A relay is between a gateway and quotad, and hands on questions in one of these ways.
type relay struct {
	*httptest.Server
	asked, opened atomic.Int64 // questions, and connections of the gateway
	way           atomic.Int32
	ended         chan struct{}
}

const (
	relayPasses = iota
	relayLoses  // each answer, after quotad has charged it, except the first one
	relayDoubles
	relayIsSilent
)

func newRelay(t *testing.T, n *testNode) *relay {
	t.Helper()
	target, err := url.Parse(n.url)
	if err != nil {
		t.Fatal(err)
	}
	pass, r := httputil.NewSingleHostReverseProxy(target), &relay{ended: make(chan struct{})}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, asked *http.Request) {
		first := r.asked.Add(1) == 1
		switch way := r.way.Load(); {
		case way == relayIsSilent:
			select {
			case <-asked.Context().Done():
			case <-r.ended:
			}
		case way == relayLoses && !first:
			pass.ServeHTTP(httptest.NewRecorder(), asked)
			panic(http.ErrAbortHandler)
		case way == relayDoubles:
			pass.ServeHTTP(httptest.NewRecorder(), asked)
			fallthrough
		default:
			pass.ServeHTTP(w, asked)
		}
	}))
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.opened.Add(1)
		}
	}
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	r.Start()
	t.Cleanup(func() { close(r.ended); r.Close() })
	return r
}

// goes sets a way, and forgets what was counted.
func (r *relay) goes(way int32) {
	r.way.Store(way)
	r.asked.Store(0)
	r.opened.Store(0)
}

// host is the relay's address, as the configurations have quotad's.
func (r *relay) host() string { return strings.TrimPrefix(r.URL, "http://") }

// floods sends requests when a limit is reached. They cost no statement of the database, and no connection
// to quotad, where the gateway keeps one. A node whose last poll is older than a second refuses nothing from
// memory, which a busy machine may cause: then the flood begins again.
func (k *gatewayKind) floods(t *testing.T, n *testNode, r *relay, client *http.Client, at string) {
	t.Helper()
	const all = 20
	var from, sent int64
	k.refused(t, client, at) // reads the row, and opens a connection
	for range 5 {
		before := n.node.engine.Stats()
		r.goes(relayPasses)
		for range all {
			k.refused(t, client, at)
		}
		opened := int64(all)
		if k.keeps {
			opened = 0
		}
		if got := r.opened.Load(); got != opened {
			t.Errorf("%d refused requests opened %d connections, want %d", all, got, opened)
		}
		after := n.node.engine.Stats()
		if from, sent = after.FromMemory-before.FromMemory, after.Statements-before.Statements; from == all && sent == 0 {
			return
		}
	}
	t.Errorf("of %d refused requests %d were refused from memory; %d statements were sent", all, from, sent)
}

// refused fails unless a limit refuses a request.
func (k *gatewayKind) refused(t *testing.T, client *http.Client, at string) {
	t.Helper()
	if status, header, _ := through(t, client, "GET", at+"/", "key-of-acme", ""); status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("a flood: %d %v", status, header)
	}
}

// loses has the answer to each question but the first of a connection lost, after quotad has charged it.
func (k *gatewayKind) loses(t *testing.T, r *relay, client *http.Client, at string) {
	t.Helper()
	r.goes(relayLoses)
	for range 2 {
		through(t, client, "GET", at+"/", "key-of-acme", "", "Idempotency-Key", "one")
	}
	if got := r.asked.Load(); got != 2 {
		t.Errorf("%d questions were sent for 2 requests", got)
	}
}

// once has questions come twice, and answers lost, where each request has an id. Each request is charged
// once.
func (k *gatewayKind) once(t *testing.T, n *testNode, u *upstream, key string, r *relay) {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	at, before := k.passes(t, n, u, key, append(k.ids, "127.0.0.1:8080", r.host())...), n.node.engine.Stats().Admitted
	for _, way := range []int32{relayDoubles, relayLoses} {
		r.goes(way)
		for range 2 {
			through(t, client, "GET", at+"/", "key-of-acme", "", "X-Quotad-Id", "forged", "X-Request-Id", "forged")
		}
	}
	if asked, admitted := r.asked.Load(), n.node.engine.Stats().Admitted-before; asked < 2 || k.again && asked == 2 || admitted != 4 {
		t.Errorf("4 requests with ids were charged %d times; for two of them %d questions were sent", admitted, asked)
	}
}

// answersInTime has quotad be silent, and then its host be gone. The client of each gateway has its answer
// within 2.5 s.
func (k *gatewayKind) answersInTime(t *testing.T, r *relay, client *http.Client, at string) {
	t.Helper()
	r.goes(relayIsSilent)
	k.inTime(t, "a silent quotad", client, at)
	address := r.host()
	r.CloseClientConnections()
	_ = r.Listener.Close()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	raw, err := listener.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// Nobody accepts, and the queue is full: whoever connects hears nothing, as of a host that is gone.
	if err := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if conn, err := net.DialTimeout("tcp", address, 50*time.Millisecond); err == nil {
			defer conn.Close()
		}
	}
	k.inTime(t, "quotad's host is gone", client, at)
}

// inTime fails if five requests are answered late, one after the other. One that is late may be so because
// the machine is busy.
func (k *gatewayKind) inTime(t *testing.T, what string, client *http.Client, at string) {
	t.Helper()
	var took time.Duration
	for range 5 {
		began := time.Now()
		if status, _, text := through(t, client, "GET", at+"/", "key-of-acme", ""); status != k.away {
			t.Errorf("%s: %d %s, want %d", what, status, text, k.away)
		}
		if took = time.Since(began); took <= 2500*time.Millisecond {
			return
		}
	}
	t.Errorf("%s: the client waited for %s", what, took)
}

func (k *gatewayKind) withoutQuotad(t *testing.T, n *testNode, u *upstream, key string) {
	t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	wrong := k.passes(t, n, u, "qk_wrong")
	if status, _, _ := through(t, client, "GET", wrong, "key-of-acme", ""); status != k.wrongKey {
		t.Errorf("a wrong key: %d", status)
	}
	at, open := k.passes(t, n, u, key), ""
	if k.open != nil {
		open = k.passes(t, n, u, key, k.open...)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	k.inTime(t, "quotad is stopped", client, at)
	if open != "" {
		if status, _, text := through(t, client, "GET", open, "key-of-acme", ""); status != 200 {
			t.Errorf("open, and quotad is stopped: %d %s", status, text)
		}
	}
}

// between has a relay between the gateway and quotad: floods at the limit, lost and late answers. raised is
// called when the limit is high.
func (k *gatewayKind) between(t *testing.T, n *testNode, u *upstream, key string, raised func()) {
	t.Helper()
	r, client := newRelay(t, n), newClient()
	defer client.CloseIdleConnections()
	at := k.passes(t, n, u, key, "127.0.0.1:8080", r.host())
	k.floods(t, n, r, client, at)
	n.do("PUT", "/v1/customers/acme/overrides/hourly", `{"limit":100000}`).is(201)
	raised()
	k.loses(t, r, client, at)
	k.once(t, n, u, key, r)
	k.answersInTime(t, r, client, at)
}
