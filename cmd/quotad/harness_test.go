package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const testAdminKey = "test-admin-key-0123456789"

// testNode is a quotad that serves, wired by run itself.
type testNode struct {
	t           testing.TB
	url         string
	key         string // what requests are sent with; an admin key at first
	databaseURL string
	node        *node
	out, log    *pgtest.Log
	client      *http.Client
	stop        func() error  // ends it in order; to be called once or not at all
	endDrain    func()        // with --drain-delay the node drains until this is called, or the test ends
	skipped     *atomic.Int64 // what the node's stopwatch is ahead, ns; see skip
	cutOff      bool          // stop may say that something was cut off
	document    *atomic.Pointer[document]
	documented  documentedBy
	invoice     string         // the id of one, see billed
	webhook     string         // the id of one, see pagesWorld
	closed      []*http.Cookie // of a customer that was archived since, see pagesWorld
}

// unhurried is how long a node waits at least until it gives something up, in tests that are of no
// deadline. A machine that stalls is no outage to them.
const unhurried = time.Minute

// start runs quotad on a database (empty: a new one of the test's) until the test ends. It has long
// deadlines, see unhurried.
func start(t testing.TB, databaseURL string, flags ...string) *testNode {
	t.Helper()
	long := []string{"--request-timeout=" + unhurried.String(), "--decide-within=" + unhurried.String(), "--start-timeout=" + testkit.Patience.String()}
	return startWithin(t, unhurried, databaseURL, append(long, flags...)...)
}

// startBrief is start with the program's own deadlines, for tests of deadlines and of databases that
// hang.
func startBrief(t testing.TB, databaseURL string, flags ...string) *testNode {
	t.Helper()
	return startWithin(t, 0, databaseURL, append([]string{"--decide-within=5s"}, flags...)...)
}

func startWithin(t testing.TB, patience time.Duration, databaseURL string, flags ...string) *testNode {
	t.Helper()
	if databaseURL == "" {
		databaseURL = pgtest.NewDatabase(t)
	}
	n := &testNode{
		t: t, key: testAdminKey, databaseURL: databaseURL, out: new(pgtest.Log), log: new(pgtest.Log),
		document: new(atomic.Pointer[document]), skipped: new(atomic.Int64),
	}
	s := settingsOf(t, append([]string{"--listen=127.0.0.1:0", "--database-url=" + databaseURL, "--admin-key=" + testAdminKey}, flags...)...)
	s.stdout, s.stderr, s.patience = n.out, n.log, patience
	n.documented = documentedBy{s.PublicURL, s.MetricsListen != ""}
	began := time.Now()
	s.stopwatch = func() time.Duration { return time.Since(began) + time.Duration(n.skipped.Load()) }
	drained := make(chan struct{})
	n.endDrain = sync.OnceFunc(func() { close(drained) })
	s.drain = func(time.Duration) { <-drained }
	started, ended := make(chan *node, 1), make(chan error, 1)
	s.started = func(n *node) { started <- n }
	ctx, cancel := context.WithCancel(testkit.Context(t))
	go func() { ended <- run(ctx, *s) }()
	var once sync.Once
	var result error
	n.stop = func() error {
		once.Do(func() {
			cancel()
			n.client.CloseIdleConnections()
			select {
			case result = <-ended:
			case <-time.After(2 * testkit.Patience):
				result = errors.New("it does not end")
			}
		})
		return result
	}
	n.client = newClient()
	select {
	case n.node = <-started:
		n.url = n.node.url
	case err := <-ended:
		cancel()
		t.Fatalf("quotad did not start: %v\n%s", err, n.log)
	}
	t.Cleanup(func() {
		n.endDrain()
		if err := n.stop(); err != nil && !n.cutOff {
			t.Errorf("quotad did not stop as it should: %v", err)
		}
		if t.Failed() {
			t.Logf("quotad's log:\n%s", n.log)
		}
	})
	return n
}

func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: testkit.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// settingsOf are serve's settings as its command line makes them.
func settingsOf(t testing.TB, flags ...string) *settings {
	t.Helper()
	p := program{stdout: io.Discard, stderr: io.Discard, lookupEnv: noEnv}
	command, _, err := p.parse(append([]string{"serve"}, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return command.(*settings)
}

func noEnv(string) (string, bool) { return "", false }

// skip sets the node's stopwatch forward, as if that time had passed between two requests.
func (n *testNode) skip(d time.Duration) { n.skipped.Add(int64(d)) }

// as is the same node, asked with another key.
func (n *testNode) as(key string) *testNode {
	other := *n
	other.key = key
	return &other
}

// answer is a response, read whole.
type answer struct {
	t      testing.TB
	what   string // the request, for messages
	proto  string
	status int
	header http.Header
	raw    []byte
	body   any
}

// do sends a request and holds the answer against the node's OpenAPI document. body is
// JSON text, or nothing. headers are "Name: value".
func (n *testNode) do(method, path, body string, headers ...string) *answer {
	n.t.Helper()
	a, err := n.try(method, path, body, headers...)
	if err != nil {
		n.t.Fatal(err)
	}
	return a
}

func (n *testNode) try(method, path, body string, headers ...string) (*answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, n.url+path, reader)
	if err != nil {
		return nil, err
	}
	if n.key != "" {
		request.Header.Set("Authorization", "Bearer "+n.key)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if value == "" {
			request.Header.Del(name)
			continue
		}
		request.Header.Set(name, value)
	}
	response, err := n.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{t: n.t, what: method + " " + path, proto: response.Proto, status: response.StatusCode, header: response.Header, raw: raw}
	if len(raw) > 0 && strings.Contains(response.Header.Get("Content-Type"), "json") {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&a.body); err != nil {
			return nil, fmt.Errorf("%s: not JSON: %w\n%s", a.what, err, raw)
		}
	}
	if err := documentOf(n).check(request, response, raw); err != nil {
		return nil, fmt.Errorf("%s answered %d, which is not as documented: %w\n%s", a.what, a.status, err, raw)
	}
	return a, nil
}

// is fails the test unless the status is the given one.
func (a *answer) is(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s answered %d, not %d:\n%s", a.what, a.status, status, a.raw)
	}
	return a
}

// at is the member at a path such as limits.0.remaining; nil where there is none.
func (a *answer) at(path string) any {
	value := a.body
	for _, step := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// has fails the test unless the member at the path reads as want.
func (a *answer) has(path string, want any) *answer {
	a.t.Helper()
	if got := a.at(path); fmt.Sprint(got) != fmt.Sprint(want) {
		a.t.Fatalf("%s: %s is %v, not %v:\n%s", a.what, path, got, want, a.raw)
	}
	return a
}

func (a *answer) str(path string) string {
	a.t.Helper()
	s, ok := a.at(path).(string)
	if !ok {
		a.t.Fatalf("%s: %s is no string:\n%s", a.what, path, a.raw)
	}
	return s
}

func (a *answer) num(path string) int64 {
	a.t.Helper()
	number, _ := a.at(path).(json.Number)
	n, err := number.Int64()
	if err != nil {
		a.t.Fatalf("%s: %s is no whole number:\n%s", a.what, path, a.raw)
	}
	return n
}

// headerIs fails the test unless a header has exactly this value; empty: it is not there.
func (a *answer) headerIs(name, want string) *answer {
	a.t.Helper()
	if got := strings.Join(a.header.Values(name), " | "); got != want {
		a.t.Fatalf("%s: header %s is %q, not %q", a.what, name, got, want)
	}
	return a
}

// hears waits until the node has seen all changes that were made before the call. From then on they
// count. It looks four times a second, and judges nothing by what it saw more than a second ago.
func (n *testNode) hears() (took time.Duration) {
	n.t.Helper()
	began := time.Now()
	return testkit.Eventually(n.t, "the node sees all changes", func() bool {
		since := time.Since(began)
		age, contacted := n.node.catalog.Age()
		return contacted && age < since
	})
}

// longForm reports whether tests have their long sizes.
func longForm() bool { return os.Getenv("QUOTAD_TEST_LONG") != "" }

// awayFromHoursEnd waits where an hourly window would end within the next seconds.
func awayFromHoursEnd(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, "a new hour", func() bool {
		now := time.Now()
		return now.Truncate(time.Hour).Add(time.Hour).Sub(now) > 5*time.Second
	})
}
