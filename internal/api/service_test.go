package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/fastpath"
	"quotad/internal/postgres"
	"quotad/internal/quota/session"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for state, status := range map[serve.State]int{serve.StateStarting: 503, serve.StateReady: 200, serve.StateDegraded: 200, serve.StateStopping: 503} {
		n.state = state
		got := n.want(status, "GET", "/readyz", "", "Authorization", "-")
		if status == 200 && got.json["status"] != string(state) {
			t.Errorf("%s: %s", state, got.text)
		}
	}
	n.state, n.reason = serve.StateDegraded, "the disk is full"
	if got := n.want(200, "GET", "/readyz", ""); got.json["reason"] != n.reason {
		t.Errorf("no reason: %s", got.text)
	}
	n.want(200, "GET", "/livez", "", "Authorization", "-")
	n.want(200, "GET", "/v1/meters", "")
	n.want(401, "GET", "/metrics", "", "Authorization", "-")
	n.want(403, "GET", "/metrics", "", "Authorization", n.key("backend"))
	got := n.want(200, "GET", "/metrics", "", "Authorization", n.key("read"))
	for _, name := range []string{
		"go_goroutines", "process_", `quotad_http_requests_total{method="GET",route="/livez",status="200"} 1`,
		`quotad_hits_total{outcome="allowed"} 0`,
	} {
		if !strings.Contains(got.text, name) {
			t.Errorf("no %s in the metrics", name)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, path := range []string{"/docs", "/openapi.json", "/problems/not-found", "/problems/outcome-unknown"} {
		got := n.want(200, "GET", path, "", "Authorization", "-")
		if strings.Contains(got.text, "<script") || strings.Contains(got.text, "src=") || len(got.text) < 200 {
			t.Errorf("%s: %.200s", path, got.text)
		}
	}
	if docs := n.want(200, "GET", "/docs", ""); !strings.Contains(docs.text, "/v1/hits/batch") || !strings.Contains(docs.text, "schema-Refusal") {
		t.Error("the docs lack routes or schemas")
	}
	n.want(404, "GET", "/problems/none", "")
	for _, path := range []string{"/", "/docs/"} { // the client follows
		if got := n.want(200, "GET", path, ""); !strings.Contains(got.text, "/v1/hits/batch") {
			t.Errorf("%s does not lead to the documentation: %.200s", path, got.text)
		}
	}
	if got := n.want(404, "GET", "/nothing", ""); !strings.HasSuffix(got.json["detail"].(string), "see /docs") {
		t.Errorf("404: %s", got.text)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for path, allow := range map[string]string{
		"/v1/hits": "POST", "/v1/meters/x": "GET, HEAD, PUT", "/v1/customers/a%2Fb": "GET, HEAD, PUT, DELETE",
		"/livez": "GET, HEAD",
	} {
		for _, method := range []string{"PATCH", "OPTIONS", "PROPFIND"} {
			got := n.want(405, method, path, "", "Authorization", "-")
			if got.header.Get("Allow") != allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got.header.Get("Allow"), allow)
			}
		}
	}
	if got := n.want(200, "HEAD", "/livez", ""); got.text != "" {
		t.Errorf("HEAD has a body: %s", got.text)
	}
	n.want(405, "HEAD", "/v1/hits", "")
	n.want(401, "HEAD", "/v1/meters", "", "Authorization", "-")
}

// A panic is a 500 to the client and a stack in the log.
func TestPanicsAreProblems(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := New(Options{Options: serve.Options{
		Registry: prometheus.NewRegistry(), Wall: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Ready: func() (serve.State, string) { panic("boom") },
	}})
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"/problems/internal"`) || strings.Contains(w.Body.String(), "boom") ||
		!strings.Contains(log.String(), "boom") {
		t.Errorf("%d %s\n%s", w.Code, w.Body, log.String())
	}
}

// A client that sends its body slower than the read timeout is told so and let go.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	server := newPatientServer(n.server.Handler())
	server.ReadTimeout = 200 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	go func() { _ = server.Serve(fastpath.Listener(listener)) }()
	t.Cleanup(func() { check(t, server.Close()) })
	conn, err := net.Dial("tcp", listener.Addr().String())
	check(t, err)
	defer conn.Close()
	check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = io.WriteString(conn, "POST /v1/hits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+adminSecret+
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	check(t, err)
	answer, err := io.ReadAll(conn)
	check(t, err)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408") || !strings.Contains(string(answer), "/problems/request-timeout") {
		t.Errorf("answer: %s", answer)
	}
}

// A body that is too large and never ends is answered at once.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	server := newPatientServer(n.server.Handler())
	server.ReadTimeout = time.Hour // nobody waits for the rest of a body
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	go func() { _ = server.Serve(fastpath.Listener(listener)) }()
	t.Cleanup(func() { check(t, server.Close()) })
	for name, head := range map[string]string{"chunked": "Transfer-Encoding: chunked\r\n\r\n20000\r\n", "counted": "Content-Length: 100000\r\n\r\n"} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		check(t, err)
		defer conn.Close()
		check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = io.WriteString(conn, "POST /v1/hits HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+adminSecret+
			"\r\nContent-Type: application/json\r\n"+head+strings.Repeat(" ", request.MaxBody+1))
		check(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || response.StatusCode != 413 || !response.Close {
			t.Errorf("%s: %+v, %v", name, response, err)
		}
	}
}

// What runs out of its own time says nothing of the database: no limit's on_outage lets it in.
func TestADeadlineIsNoOutage(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5}`)
	patient := n
	n = n.hasty(300 * time.Millisecond)
	conn, err := postgres.Connect(testkit.Context(t), n.database, nil)
	check(t, err)
	defer func() { check(t, conn.Close(testkit.Context(t))) }()
	_, err = conn.Exec(testkit.Context(t), "BEGIN; LOCK TABLE counters IN ACCESS EXCLUSIVE MODE")
	check(t, err)
	const look = `{"customer":"acme","meter":"requests","dry_run":true}`
	if got := n.do("POST", "/v1/hits", look); got.status != 503 || got.json["type"] != "/problems/too-busy" {
		t.Errorf("a dry run: %d %s", got.status, got.text)
	}
	got := n.want(200, "POST", "/v1/hits/batch", `{"hits":[`+look+`,`+look+`]}`).text
	if strings.Count(got, "/problems/too-busy") != 2 {
		t.Errorf("dry runs of a batch: %s", got)
	}
	if got := n.do("GET", "/v1/customers/acme/quota", ""); got.status != 503 || got.json["type"] != "/problems/too-busy" {
		t.Errorf("the quota: %d %s", got.status, got.text)
	}
	_, err = conn.Exec(testkit.Context(t), "ROLLBACK")
	check(t, err)
	patient.want(429, "POST", "/v1/hits", look)
}

// Of an error after the end of its request nobody says that it is an outage.
func TestOutOfTime(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	away := fmt.Errorf("x: %w", session.ErrUnavailable)
	if err := serve.OutOfTime(t.Context(), away); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("in time: %v", err)
	}
	if err := serve.OutOfTime(over, away); errors.Is(err, session.ErrUnavailable) || problem.Of(err).Kind != problem.KindBusy {
		t.Errorf("late: %v", err)
	}
	for _, other := range []error{nil, session.ErrNoSession, fmt.Errorf("%w: %w", session.ErrOutcomeUnknown, session.ErrUnavailable)} {
		if err := serve.OutOfTime(over, other); !errors.Is(err, other) {
			t.Errorf("%v became %v", other, err)
		}
	}
}

// With the database away, hits are let in and say so, as far as limits go, unless a limit wants otherwise.
func TestOutage(t *testing.T) {
	t.Parallel()
	pg := pgtest.Server(t)
	n := newNodeOn(t, pg.URL())
	n.setUp(hourly)
	n.want(201, "PUT", "/v1/meters/strict", `{"unit":"x"}`)
	n.want(201, "PUT", "/v1/plans/strict", `{"name":"S","currency":"USD","interval":"month","base_price_minor":0,
		"limits":[{"name":"s","meter":"strict","algorithm":"fixed_window","limit":5,"window":"1h","on_outage":"deny"}],"prices":[]}`)
	n.want(201, "PUT", "/v1/customers/careful", `{"name":"x","plan":"strict","timezone":"UTC"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"careful","meter":"strict"}`)
	for _, key := range []string{"suspended", "ended"} {
		n.want(201, "PUT", "/v1/customers/"+key, `{"name":"x","plan":"pro"}`)
	}
	n.want(200, "PUT", "/v1/customers/suspended/suspension", `{"reason":"x"}`)
	ends := n.nowOf().Add(time.Hour).UTC()
	n.want(200, "PUT", "/v1/customers/ended/billing", `{"ends_at":"`+ends.Format(time.RFC3339Nano)+`"}`)
	n.want(403, "POST", "/v1/hits", `{"customer":"suspended","meter":"requests"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"ended","meter":"requests"}`)
	n.want(201, "PUT", "/v1/customers/fresh", `{"name":"x","plan":"pro"}`)
	n.want(200, "POST", "/v1/hits", `{"customer":"fresh","meter":"requests","cost":0}`) // the node knows it, and no counter of it
	pg.Stop()
	var got reply
	for range 20 { // the first may have been on its way to the old server
		got = n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":3}`)
		if got.status == http.StatusOK {
			break
		}
	}
	if got.status != 200 || got.json["degraded"] != true || len(got.json["limits"].([]any)) != 0 || got.header.Get("RateLimit") != "" {
		t.Errorf("in an outage: %d %s", got.status, got.text)
	}
	for range 2 { // of an outage, too: what the node knew last
		if got = n.do("POST", "/v1/hits", `{"customer":"suspended","meter":"requests"}`); got.status != 403 || got.json["type"] != "/problems/suspended" {
			t.Errorf("suspended, in an outage: %d %s", got.status, got.text)
		}
	}
	if got = n.do("POST", "/v1/hits", `{"customer":"ended","meter":"requests"}`); got.status != 200 || got.json["degraded"] != true {
		t.Errorf("before its end, in an outage: %d %s", got.status, got.text)
	}
	got = n.do("POST", "/v1/hits", `{"customer":"careful","meter":"strict"}`)
	if got.status != 503 || got.json["type"] != "/problems/database-unavailable" || got.header.Get("Retry-After") != "1" {
		t.Errorf("on_outage deny: %d %s", got.status, got.text)
	}
	got = n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":5,"overrun":true}`)
	if got.status != 503 || got.json["type"] != "/problems/database-unavailable" {
		t.Errorf("an overrun in an outage: %d %s", got.status, got.text)
	}
	got = n.do("POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests","overrun":true}]}`)
	if strings.Contains(got.text, `"degraded":true`) || !strings.Contains(got.text, "database-unavailable") {
		t.Errorf("an overrun of a batch in an outage: %d %s", got.status, got.text)
	}
	got = n.do("POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests"},{"customer":"careful","meter":"strict"}]}`)
	if got.status != 200 || !strings.Contains(got.text, `"degraded":true`) || !strings.Contains(got.text, "database-unavailable") {
		t.Errorf("batch in an outage: %d %s", got.status, got.text)
	}
	got = n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`) // 1 was charged before, and 4 were let in since
	if got.status != 429 || got.json["degraded"] != true || len(got.json["limits"].([]any)) != 1 || got.json["as_of"] != nil {
		t.Errorf("beyond a limit in an outage: %d %s", got.status, got.text)
	}
	for i := range 6 { // of a counter that the node does not know
		got = n.do("POST", "/v1/hits", `{"customer":"fresh","meter":"requests"}`)
		if want := map[bool]int{true: 200, false: 429}[i < 5]; got.status != want || got.json["degraded"] != true {
			t.Errorf("hit %d of 5 on an untouched limit in an outage: %d %s", i+1, got.status, got.text)
		}
	}
	if got = n.do("GET", "/v1/customers/acme/quota", ""); got.status != 503 || got.header.Get("Retry-After") != "1" {
		t.Errorf("quota in an outage: %d %s", got.status, got.text)
	}
	n.want(503, "PUT", "/v1/meters/new", `{"unit":"x"}`)
	pg.Start()
	testkit.Eventually(t, "hits are charged after the outage", func() bool {
		got = n.do("POST", "/v1/hits", `{"customer":"acme","meter":"requests","cost":4}`)
		return got.status == 200 && got.json["degraded"] == nil
	})
}
