package webhooks

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/testkit/planstest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// received is a request that a receiver got.
type received struct {
	id, body string
	header   http.Header
}

// receiver answers what it is told, and keeps what it got.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(w http.ResponseWriter, r *http.Request)
}

func receive(t testing.TB, answer func(w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, received{q.Header.Get("webhook-id"), string(body), q.Header.Clone()})
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, q)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// ids are those of what was received, in their order, each once.
func (r *receiver) ids() string {
	var ids []string
	for _, got := range r.all() {
		ids = append(ids, got.id)
	}
	slices.SortFunc(ids, func(a, b string) int { return len(a)*100 + strings.Compare(a, b) - len(b)*100 })
	return strings.Join(slices.Compact(ids), " ")
}

// world is a database with webhooks, and what gives ids.
type world struct {
	t        testing.TB
	pool     *pgxpool.Pool
	hooks    *Webhooks
	numberer *events.Numberer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	pool := planstest.NewPool(t, pgtest.NewDatabase(t))
	w := &world{t, pool, patient(New(pool, true)), events.NewNumberer(pool, events.MinRetention, nil)}
	w.numberer.Within = testkit.Patience
	return w
}

// patient has a slow machine end nothing that waits.
func patient(hooks *Webhooks) *Webhooks {
	hooks.Within = testkit.Patience
	return hooks
}

// sender is a node's. What failed waits for an hour longer, or until the test has it due: so no attempt
// comes before the test has seen the one before.
func (w *world) sender() *Sender {
	s := NewSender(w.hooks, planstest.WallClock, slog.New(slog.DiscardHandler))
	s.pause = func(attempts int) time.Duration { return pauseAfter(attempts) + time.Hour }
	return s
}

// runs starts a node's sender until the end of the test, or until stop.
func (w *world) runs(s *Sender) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) says(sql string, args ...any) (text string) {
	w.t.Helper()
	if err := w.pool.QueryRow(w.t.Context(), sql, args...).Scan(&text); err != nil {
		w.t.Fatal(err)
	}
	return text
}

// happens lets so many events happen, and gives them ids.
func (w *world) happens(what string, n int) {
	w.t.Helper()
	all := make([]events.Event, n)
	for i := range all {
		all[i] = events.Event{Type: what, At: 1_700_000_000_000_000, Data: client.EventData{Plan: "pro", PlanVersion: i + 1}}
	}
	if err := events.Write(w.t.Context(), w.pool, all...); err != nil {
		w.t.Fatal(err)
	}
	w.number()
}

func (w *world) number() {
	w.t.Helper()
	if err := w.numberer.Number(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) creates(to string, types ...string) (id, secret string) {
	w.t.Helper()
	hook, secret, err := w.hooks.Create(w.t.Context(), to, types)
	if err != nil {
		w.t.Fatal(err)
	}
	return hook.ID, secret
}

const states = `SELECT coalesce(string_agg(event || ' ' || state || ' ' || attempts || ' ' || coalesce(status::text, '-'), ', ' ORDER BY event), '') FROM deliveries WHERE webhook = $1`

// becomes waits until the deliveries of a webhook are these.
func (w *world) becomes(id, want string) {
	w.t.Helper()
	got := ""
	defer func() {
		if got != want {
			w.t.Logf("deliveries are %s", got)
		}
	}()
	testkit.Eventually(w.t, "deliveries to be "+want, func() bool { got = w.says(states, id); return got == want })
}
