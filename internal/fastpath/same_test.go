package fastpath

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// patient is how long any wait of these tests lasts at most.
const patient = testkit.Patience

const (
	hitsPath = "/v1/hits"
	askPath  = "/v1/ask" // by GET or HEAD
)

// testServer is a server as quotad's is: the timeouts are far beyond what tests take.
func testServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: patient, ReadTimeout: patient, WriteTimeout: patient,
		IdleTimeout: patient, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
}

func serverEnded(t testing.TB, ended <-chan error) {
	t.Helper()
	if err := await(t, ended); !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func testOptions() Options {
	return Options{
		Serves: routed,
		Varies: []string{"Idempotency-Key", "Traceparent"},
		Wall:   time.Now,
	}
}

// routed reports whether the fast path is to serve a request.
func routed(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == hitsPath || (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path == askPath
}

// An echo answers with all that it knows of a request, or as its body says.
type echo struct {
	mu     sync.Mutex
	served []byte // f for each request that was served fast, s for each other
	others bool   // requests of other methods than POST came
	wrong  string // a request that must not have been served fast
	script *script
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	e.note(w, r, body)
	w.Header().Set("Content-Type", "text/plain")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, err.Error())
		return
	}
	what, number, _ := strings.Cut(string(body[:min(len(body), 20)]), "=")
	n, _ := strconv.Atoi(number)
	switch what {
	case "full":
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "full")
	case "close":
		w.Header().Set("X-Before", "b")
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, "too large")
	case "big":
		n = min(n, 1<<17)
		w.Header().Set("Content-Length", strconv.Itoa(n))
		_, _ = io.WriteString(w, strings.Repeat("b", n))
	case "none":
		w.Header().Add("X-Twice", "1")
		w.Header().Add("X-Twice", "2\r\n3")
		w.Header().Add("X-Again", "1\r\n2\n\r")
		w.Header().Add("X-Again", "")
		w.WriteHeader(http.StatusAccepted)
		w.Header().Add("X-Late", "1")
	case "linger":
		// Until net/http has looked for what comes meanwhile; the fast path does not look.
		if _, fast := w.(*answer); !fast && e.on() != nil && e.on().hasMore() {
			select {
			case <-e.on().peeked:
			case <-time.After(patient):
			}
		}
	default:
		text := report(r, body)
		if len(text) > 2000 { // net/http would send it in chunks
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		}
		_, _ = io.WriteString(w, text[:len(text)/2])
		_, _ = io.WriteString(w, text[len(text)/2:])
	}
}

func report(r *http.Request, body []byte) string {
	var b strings.Builder
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	fmt.Fprintf(&b, "%s %q %s host %q path %q length %d from %s te %v close %v\n",
		r.Method, r.RequestURI, r.Proto, r.Host, r.URL.String(), r.ContentLength, from, r.TransferEncoding, r.Close)
	for name, values := range r.Header {
		fmt.Fprintf(&b, "%s: %q\n", name, values)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	slices.Sort(lines)
	return fmt.Sprintf("%s\n%q\n", strings.Join(lines, "\n"), body)
}

// note remembers how a request was served, and whether that is certainly wrong.
func (e *echo) note(w http.ResponseWriter, r *http.Request, body []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others = e.others || r.Method != http.MethodPost
	if _, fast := w.(*answer); !fast {
		e.served = append(e.served, 's')
		return
	}
	e.served = append(e.served, 'f')
	length := []string{strconv.Itoa(len(body))}
	if r.Method != http.MethodPost && len(body) == 0 && r.Header["Content-Length"] == nil {
		length = nil
	}
	if !routed(r) || r.Proto != "HTTP/1.1" || r.Close || r.ContentLength != int64(len(body)) || !slices.Equal(r.Header["Content-Length"], length) {
		e.wrong = report(r, body)
	}
}

func (e *echo) on() *script {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.script
}

// A tester is a testing.TB or a rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// A pair is two servers that must answer alike.
type pair struct {
	fast, plain side
	known       bool // the one difference that is known is none
}

type side struct {
	echo  *echo
	conns *scripts
}

func newPair(t testing.TB) *pair {
	return newPairWith(t, func(l net.Listener) net.Listener { return strictListener{l} })
}

// newPairWith is newPair with another listener of the side without the fast path.
func newPairWith(t testing.TB, under func(net.Listener) net.Listener) *pair {
	p := &pair{}
	for _, s := range []*side{&p.fast, &p.plain} {
		s.echo, s.conns = &echo{}, newScripts()
		var listener net.Listener = s.conns
		server := New(testServer(s.echo), testOptions())
		if s == &p.fast {
			listener = Listener(listener)
		} else {
			server, listener = &Server{Server: testServer(s.echo)}, under(listener)
		}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		t.Cleanup(func() {
			_ = server.Close()
			serverEnded(t, ended)
		})
	}
	return p
}

// A strictListener gives net/http its connections without the fast path. What makes a request faulty
// is refused on both sides alike.
type strictListener struct{ net.Listener }

func (l strictListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	return &strictConn{Conn: nc}, err
}

type strictConn struct {
	net.Conn
	framing framing
}

func (c *strictConn) Read(p []byte) (int, error) { return c.framing.read(c.Conn, p) }

func (c *strictConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// run plays a script and returns what was answered and how.
func (s *side) run(t tester, segments []segment) (answers, served string) {
	t.Helper()
	script := newScript(segments)
	s.echo.mu.Lock()
	s.echo.served, s.echo.others, s.echo.wrong, s.echo.script = nil, false, "", script
	s.echo.mu.Unlock()
	timeout := time.NewTimer(patient)
	defer timeout.Stop()
	select {
	case s.conns.next <- script:
	case <-timeout.C:
		t.Fatal("the server accepts no connection")
	}
	select {
	case <-script.ended:
	case <-timeout.C:
		_ = script.Close()
		t.Fatalf("the server did not end the connection; sent %+q", segments)
	}
	s.echo.mu.Lock()
	defer s.echo.mu.Unlock()
	if s.echo.wrong != "" {
		t.Fatalf("served fast: %s", s.echo.wrong)
	}
	script.mu.Lock()
	defer script.mu.Unlock()
	return undated(script.out.Bytes()), string(s.echo.served)
}

var dates = regexp.MustCompile(`\r\nDate: [^\r]*GMT\r\n`)

func undated(p []byte) string { return string(dates.ReplaceAll(p, []byte("\r\nDate: -\r\n"))) }

// same plays a script to both and returns how the requests were served.
func (p *pair) same(t tester, segments []segment) string {
	t.Helper()
	want, calls := p.plain.run(t, segments)
	got, served := p.fast.run(t, segments)
	if p.known && p.fast.echo.others && badLine(got, want) {
		return served
	}
	if got != want {
		t.Fatalf("sent %+q:\ngot  %q\nwant %q\nserved %s", segments, got, want, served)
	}
	if len(served) != len(calls) {
		t.Fatalf("sent %+q: %d requests were served, and %d by net/http", segments, len(served), len(calls))
	}
	return served
}

// badLine reports whether the answers are the same up to a last one, that the request is bad.
// After a POST, but no other request, net/http takes an empty line; when that POST was served
// fast, it knows only of the one before.
func badLine(got, want string) bool {
	before, bad := strings.CutSuffix(got, "HTTP/1.1 400 Bad Request\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request")
	return bad && strings.HasPrefix(want, before)
}

// inOne is all of it at once.
func inOne(segments []segment) []segment {
	var b bytes.Buffer
	for _, s := range segments {
		b.WriteString(s.text)
	}
	return []segment{{text: b.String()}}
}

// cutAt is all of it in two, the second of which may be early.
func cutAt(segments []segment, at int, early bool) []segment {
	text := inOne(segments)[0].text
	return []segment{{text: text[:at]}, {text: text[at:], early: early}}
}

func (s segment) String() string {
	if s.early {
		return "early " + s.text
	}
	return s.text
}
