package faults

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// frozen is a node that stops in the middle of its transactions, and what its callers heard.
type frozen struct {
	t      *testing.T
	here   *process // that is stopped
	there  string   // URL of another
	client *http.Client
	look   *pgx.Conn

	stop    atomic.Bool
	callers sync.WaitGroup
	charged atomic.Int64 // plain hits that were admitted
	unsure  atomic.Int64 // plain hits whose outcome is unknown
	mu      sync.Mutex
	ids     []string // of the others, whatever became of them
	stalled bool     // a hit that nobody holds up waited for as long as makes an outage
}

// frozenCallers is how many callers hit on the node that is stopped, half of them with ids.
const frozenCallers = 16

// TestFrozenNode: a node is stopped, as by SIGSTOP or by its machine, while it holds rows. Hits
// of other customers go on at another node, and hits of the same one once the server has ended
// the session of the stopped one. When that goes on, each of its hits has a clear answer,
// nothing is charged twice, and it serves again.
func TestFrozenNode(t *testing.T) {
	binary, databaseURL := build(t), pgtest.NewDatabase(t)
	// The way to the database takes a while, so that transactions are open for most of the time.
	slow := newProxy(t, addressOf(t, databaseURL), toPostgres, newDice(testkit.Seed(t), 0, 2*frozenStall, stall))
	flags := append([]string{"--lanes=1"}, steady...)
	f := &frozen{t: t, client: newHTTPClient(), here: launch(t, binary, throughProxy(t, databaseURL, slow), flags...)}
	f.there = "http://" + launch(t, binary, databaseURL, flags...).at
	t.Cleanup(f.client.CloseIdleConnections)
	setUp(t, f.there)
	var err error
	if f.look, err = postgres.Connect(testkit.Context(t), databaseURL, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.look.Close(testkit.Context(t)) })
	f.plain(f.there, 0) // its row is there
	others := []int{2, 4, 6}
	for _, customer := range others {
		f.plain(f.there, customer)
	}
	slow.dice.set(1)
	for i := range frozenCallers {
		f.callers.Go(func() { f.call(i) })
	}
	t.Cleanup(func() { f.stop.Store(true) })
	seen := false
	for range 100 { // a slow machine may take too long
		f.freeze()
		goOn := true
		for _, customer := range others {
			goOn = f.at(f.there, customer) && goOn
		}
		if seen = f.holds() && goOn; seen {
			break
		}
		f.signal(syscall.SIGCONT)
	}
	if !seen {
		t.Fatal("other customers' hits failed, or waited until the stopped node's session was ended")
	}
	f.once(f.there, "while-frozen")
	f.plain(f.there, 0)
	if f.holds() {
		t.Error("a row that is held was written")
	}
	f.stop.Store(true)
	slow.dice.set(0)
	f.signal(syscall.SIGCONT)
	f.callers.Wait()
	testkit.Eventually(t, "the node is ready again, and not degraded", func() bool {
		state, _ := send(f.client, request{http.MethodGet, "/readyz", "", ""}, "http://"+f.here.at)
		return strings.Contains(string(state.raw), `"status":"ready"`)
	})
	f.plain("http://"+f.here.at, 0)
	f.settle()
}

// frozenStall is how long what is sent to the database takes, about.
const frozenStall = 40 * time.Millisecond

func (f *frozen) signal(s syscall.Signal) {
	f.t.Helper()
	if err := f.here.cmd.Process.Signal(s); err != nil {
		f.t.Fatal(err)
	}
}

// freeze stops the node when it holds a row.
func (f *frozen) freeze() {
	f.t.Helper()
	testkit.Eventually(f.t, "the node is stopped while it holds a row", func() bool {
		f.signal(syscall.SIGSTOP)
		time.Sleep(4 * frozenStall) // until what is on its way has come
		if f.holds() {
			return true
		}
		f.signal(syscall.SIGCONT)
		time.Sleep(10 * frozenStall) // it works on for a while
		return false
	})
}

// holds reports whether somebody who does nothing has the first customer's row.
func (f *frozen) holds() (held bool) {
	f.t.Helper()
	err := f.look.QueryRow(testkit.Context(f.t), `
		SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction')
		   AND EXISTS (SELECT FROM counters) AND NOT EXISTS (SELECT FROM (
			SELECT FROM counters WHERE customer = (SELECT min(id) FROM customers WHERE key = $1) AND attribute = '' FOR UPDATE SKIP LOCKED) free)`,
		keyOf(0)).Scan(&held)
	if err != nil {
		f.t.Fatal(err)
	}
	return held
}

func frozenHit(customer int, id string) request {
	h := charge{place: place{customer, "calls", "eu"}, cost: 1, id: id}
	return request{http.MethodPost, "/v1/hits", h.body(), ""}
}

// call hits on the node that is to be stopped until it was.
func (f *frozen) call(i int) {
	for n := 0; !f.stop.Load(); n++ {
		id := ""
		if i%2 == 0 {
			id = fmt.Sprintf("frozen-%d-%d", i, n)
			f.mu.Lock()
			f.ids = append(f.ids, id)
			f.mu.Unlock()
		}
		a, err := send(f.client, frozenHit(0, id), "http://"+f.here.at)
		again, doubt := a.unanswered()
		switch {
		case err != nil:
			f.t.Errorf("a hit on the stopped node got no answer: %v", err)
			return
		case a.status == http.StatusOK && a.admitted():
			if id == "" {
				f.charged.Add(1)
			}
		case !again:
			f.t.Errorf("a hit on the stopped node: %d %s", a.status, a.raw)
		case doubt && id == "":
			f.unsure.Add(1)
		}
	}
}

// plain makes a hit that must be admitted, of the first customer or of another. It is sent again only where
// the machine stalled.
func (f *frozen) plain(url string, customer int) {
	f.t.Helper()
	testkit.Eventually(f.t, "a hit is admitted", func() bool { return f.at(url, customer) })
}

// at makes a hit once, and reports whether it was charged. It may fail only after a wait that makes an outage,
// its own or another hit's: nobody else waits for that long.
func (f *frozen) at(url string, customer int) bool {
	f.t.Helper()
	began := time.Now()
	a, err := send(f.client, frozenHit(customer, ""), url)
	if again, doubt := a.unanswered(); err == nil && (again || a.Degraded) {
		if doubt && customer == 0 {
			f.unsure.Add(1)
		}
		if f.stalled = f.stalled || time.Since(began) >= steadyWithin; !f.stalled {
			f.t.Fatalf("a hit of customer %d failed after %s: %d %s", customer, time.Since(began), a.status, a.raw)
		}
		return false
	}
	if err != nil || a.status != http.StatusOK || !a.admitted() {
		f.t.Fatalf("a hit of customer %d: %d %s %v", customer, a.status, a.raw, err)
	}
	if customer == 0 {
		f.charged.Add(1)
	}
	return true
}

// once makes a hit with an id until it is admitted.
func (f *frozen) once(url, id string) {
	f.t.Helper()
	f.ids = append(f.ids, id)
	f.resend(url, id)
}

func (f *frozen) resend(url, id string) {
	f.t.Helper()
	testkit.Eventually(f.t, "hit "+id+" is admitted", func() bool {
		a, err := send(f.client, frozenHit(0, id), url)
		return err == nil && a.status == http.StatusOK && a.admitted()
	})
}

// settle sends all that has an id again, and compares what is charged with what was told.
func (f *frozen) settle() {
	f.t.Helper()
	for _, id := range f.ids {
		f.resend(f.there, id)
	}
	a, err := send(f.client, quotaOf(0, "eu"), f.there)
	if err != nil || a.status != http.StatusOK {
		f.t.Fatal(a.status, err)
	}
	low := f.charged.Load() + int64(len(f.ids))
	high := low + f.unsure.Load()
	f.t.Logf("%d plain hits and %d with ids were charged, %d of unknown outcome", f.charged.Load(), len(f.ids), f.unsure.Load())
	for _, m := range a.Meters {
		if m.Meter == "calls" && (m.Used < low || m.Used > high) {
			f.t.Errorf("%d units of usage, not %d … %d", m.Used, low, high)
		}
	}
	for _, wrong := range snapshot(0, &a.content) {
		f.t.Error(wrong)
	}
}
