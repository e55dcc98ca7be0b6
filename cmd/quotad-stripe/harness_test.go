package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotad/client"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const adminKey = "bridge-test-0123456789abcdef0123456789abcdef"

// world is a quotad on a database of its own, a stripe-mock, and a ledger before it.
type world struct {
	t      *testing.T
	ctx    context.Context
	quotad *client.Client
	stripe *ledger
	url    string // of the ledger
	http   *http.Client
	log    *pgtest.Log

	database string // URL
	restless bool   // a bridge may fail for ever
	unswept  bool   // bridges do not look at all that is open when they start: what they missed stays missed
}

// build makes a program of this module. It stays in the repository's bin, where the next test finds it up to date.
func build(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/bridge-test/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return path
}

// run starts a program that ends with the test, and waits until it answers.
func run(t *testing.T, ready string, cmd *exec.Cmd) {
	t.Helper()
	var out pgtest.Log
	cmd.Stdout, cmd.Stderr = &out, &out
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "QUOTAD_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is told to stop, and says so
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(testkit.Patience):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s printed\n%s", filepath.Base(cmd.Path), out.String())
		}
	})
	testkit.Eventually(t, filepath.Base(cmd.Path)+" answers", func() bool {
		response, err := http.Get(ready)
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode < 500
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: testkit.Context(t), http: &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{}}, log: &pgtest.Log{}}
	t.Cleanup(w.http.CloseIdleConnections)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	at, mock := freePort(t), freePort(t)
	w.database = pgtest.NewDatabase(t)
	run(t, "http://"+mock+"/", exec.Command(build(t, "stripe-mock", "github.com/stripe/stripe-mock"), "-http-addr", mock, "-https-addr", freePort(t)))
	run(t, "http://"+at+"/readyz", exec.Command(testkit.Program(t), "serve", "--listen="+at,
		"--database-url="+w.database, "--admin-key="+adminKey, "--close-delay=0s", "--correction-time=0s"))
	w.quotad = &client.Client{BaseURL: "http://" + at, Key: adminKey, HTTPClient: w.http}
	w.newStripe("http://" + mock)
	return w
}

// newStripe forgets all that Stripe knew.
func (w *world) newStripe(mock string) {
	w.stripe = newLedger(mock)
	w.stripe.http = w.http
	server := httptest.NewServer(w.stripe)
	w.t.Cleanup(server.Close)
	w.url = server.URL
}

func (w *world) do(method, path string, in, out any) {
	w.t.Helper()
	if _, err := w.quotad.Do(w.ctx, method, path, nil, in, out); err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
}

type fields = map[string]any

// bill is what an invoice of a test is to say.
type bill struct {
	currency string
	base     int64
	charges  []int64
	credits  int64
	taxes    []fields
	clock    string
}

// invoice makes a customer, and returns the id of its first invoice, which is finalized: a base in
// advance, and charges.
func (w *world) invoice(customer string, b bill) string {
	w.t.Helper()
	w.prepare(customer, b)
	return w.await(customer)
}

// prepare does all but wait.
func (w *world) prepare(customer string, b bill) {
	w.t.Helper()
	if b.currency == "" {
		b.currency = "EUR"
	}
	key := url.PathEscape(customer)
	plan := func(name, in string, base int64) string {
		name = fmt.Sprintf("%s-%s-%d", name, b.currency, base)
		_, _ = w.quotad.Do(w.ctx, "PUT", "/v1/plans/"+name, http.Header{"If-None-Match": {"*"}}, fields{ // 412: it is there
			"name": name, "currency": b.currency, "interval": "month", "base_price_minor": base, "base_in": in, "limits": []any{}, "prices": []any{},
		}, nil)
		return name
	}
	free, paid := plan("free", "arrears", 0), plan("paid", "advance", b.base)
	person := fields{"name": "Customer " + customer, "plan": free}
	if b.clock != "" {
		person["test_clock"] = b.clock
	}
	w.do("PUT", "/v1/customers/"+key, person, nil)
	w.do("PUT", "/v1/customers/"+key+"/billing", fields{
		"seller": "default", "due_days": 14, "order_reference": "PO 7", "taxes": append([]fields{}, b.taxes...),
		"buyer": fields{"name": "Buyer of " + customer, "address": []string{"Street 1", "12345 Town"}, "country": "DE", "tax_id": "DE1"},
	}, nil)
	for i, amount := range b.charges {
		w.do("POST", "/v1/customers/"+key+"/charges", fields{
			"description": fmt.Sprintf("charge %d", i+1), "amount_minor": amount, "currency": b.currency,
			"id": fmt.Sprintf("c%d", i),
		}, nil)
	}
	if b.credits > 0 {
		w.do("POST", "/v1/customers/"+key+"/credits", fields{"amount_minor": b.credits, "currency": b.currency, "id": "welcome"}, nil)
	}
	person["plan"], person["change"] = paid, "now"
	delete(person, "test_clock")
	header := http.Header{"If-Match": {"*"}}
	if _, err := w.quotad.Do(w.ctx, "PUT", "/v1/customers/"+key, header, person, nil); err != nil {
		w.t.Fatal(err)
	}
}

// await is the id of a customer's invoice, once its events are shown.
func (w *world) await(customer string) (id string) {
	w.t.Helper()
	return w.told(customer, "invoice.finalized")
}

// told waits until quotad shows an event of a customer's, and returns the invoice that it is about.
func (w *world) told(customer, kind string) (id string) {
	w.t.Helper()
	testkit.Eventually(w.t, kind+" of "+customer, func() bool {
		list, err := w.quotad.Events(w.ctx, url.Values{"customer": {customer}, "type": {kind}})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range list.Items {
			data, err := eventData(e)
			if err != nil {
				w.t.Fatal(err)
			}
			if data.Kind != "credit_note" {
				id = data.ID
			}
		}
		return id != ""
	})
	return id
}

func (w *world) read(id string) client.Invoice {
	w.t.Helper()
	q, err := w.quotad.Invoice(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

// settings are those of a bridge with a new state file.
func (w *world) settings() settings {
	return settings{
		QuotadURL: w.quotad.BaseURL, QuotadKey: adminKey, StripeKey: "sk_test_123", StripeURL: w.url, WebhookSecret: "whsec_test",
		State: filepath.Join(w.t.TempDir(), "state.json"), Start: "all", Poll: minPoll, StripePoll: minPoll, Sweep: minSweep,
		Workers: 4, TestReal: true, Collection: "charge_automatically", Numbers: "quotad", LogFormat: "text", LogLevel: slog.LevelInfo,
		transport: w.http.Transport, retries: new(int64), pause: time.Millisecond,
	}
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w.log, nil)) }

// drain runs a bridge on its state until nothing is left to do, and returns it, closed.
func (w *world) drain(s settings) *bridge {
	w.t.Helper()
	b, err := open(w.ctx, s, w.logger())
	if err != nil {
		w.t.Fatal(err)
	}
	defer b.store.close()
	if w.unswept {
		b.sweepAt = time.Now().Add(time.Hour)
	}
	w.rounds(b)
	return b
}

// rounds has a bridge work until nothing is left to do.
func (w *world) rounds(b *bridge) {
	w.t.Helper()
	for range 200 {
		if err := w.round(b); err != nil {
			w.t.Fatal(err)
		}
		if b.idle() {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	if w.restless {
		return
	}
	w.t.Fatalf("the bridge does not come to rest:\n%s", w.log)
}

func (w *world) round(b *bridge) error {
	b.askStripeAt = time.Time{}
	return b.round(w.ctx)
}

func (b *bridge) idle() (idle bool) {
	b.store.read(func(s *state) { idle = len(s.Work) == 0 })
	return idle
}

func (b *bridge) notices() (kinds []string) {
	b.store.read(func(s *state) {
		for _, n := range s.Notices {
			kinds = append(kinds, strings.Fields(n.ID)[0])
		}
	})
	return kinds
}
