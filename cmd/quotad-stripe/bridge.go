package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stripe/stripe-go/v85"
	"golang.org/x/time/rate"

	"quotad/client"
)

const (
	callWait   = 30 * time.Second // for one response of quotad or Stripe
	jobWait    = 5 * time.Minute  // for one invoice, whose API calls are sequential
	firstPause = 10 * time.Second // after an invoice's first failure; each further failure doubles the pause
	mostPause  = 6 * time.Hour
	awayPause  = time.Minute // the maximum if quotad or Stripe is unreachable, because the invoice is not at fault
	saveEvery  = time.Second // the interval of saves during long work
	mostWork   = 10_000      // the number of waiting invoices from which on no events are read
)

// bridge follows the events of quotad and of Stripe. One goroutine decides which invoices are due, and settles
// several of them in parallel. Webhooks only queue invoices.
type bridge struct {
	settings
	log    *slog.Logger
	store  *store
	quotad *client.Client
	stripe *stripe.Client
	wake   chan struct{} // a webhook has queued an invoice

	askStripeAt, sweepAt time.Time
	saved                time.Time

	customers [64]sync.Mutex // by a hash of the customer's key, to settle one invoice of a customer at a time

	quotadOK, stripeOK atomic.Int64 // Unix seconds of the last response
	made, paid, failed atomic.Int64

	unsigned   atomic.Int64 // the number of webhooks with an invalid signature
	complaints *rate.Limiter
}

// open reads the state file and verifies that it belongs to this quotad and this Stripe account.
func open(ctx context.Context, s settings, log *slog.Logger) (*bridge, error) {
	st, fresh, err := openStore(s.State)
	if err != nil {
		return nil, err
	}
	b := newBridge(s, log, st)
	if err := b.begin(ctx, fresh); err != nil {
		st.close()
		return nil, err
	}
	return b, nil
}

func newBridge(s settings, log *slog.Logger, st *store) *bridge {
	b := &bridge{settings: s, log: log, store: st, wake: make(chan struct{}, 1), complaints: newComplaints()}
	under := cmp.Or[http.RoundTripper](s.transport, http.DefaultTransport)
	b.quotad = &client.Client{BaseURL: s.QuotadURL, Key: s.QuotadKey, HTTPClient: &http.Client{
		Timeout: callWait, Transport: &heard{under, &b.quotadOK},
	}}
	b.stripe = stripe.NewClient(s.StripeKey, stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL:               stripe.String(s.StripeURL),
		HTTPClient:        &http.Client{Timeout: callWait, Transport: &heard{under, &b.stripeOK}},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull}, // the bridge logs failures itself, without bodies
		EnableTelemetry:   stripe.Bool(false),
		MaxNetworkRetries: s.retries,
	})))
	return b
}

// newComplaints returns a limiter for log lines about invalid signatures, because anybody can send webhooks. It
// admits at most 20 lines in any minute.
func newComplaints() *rate.Limiter { return rate.NewLimiter(rate.Every(6*time.Second), 10) }

// heard is an http.RoundTripper that records the time of the last response.
type heard struct {
	under http.RoundTripper
	at    *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (h *heard) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := h.under.RoundTrip(r)
	if err == nil {
		h.at.Store(time.Now().Unix())
	}
	return response, err
}

// begin verifies the state against Stripe's account and quotad's events, and initializes a new state.
func (b *bridge) begin(ctx context.Context, fresh bool) error {
	var known state
	b.store.read(func(s *state) { known = *s })
	if !fresh && known.Mode != b.mode() {
		return fmt.Errorf("the state file %s is of Stripe's %s mode, and the key is of its %s mode: give each its own file", b.State, known.Mode, b.mode())
	}
	account, err := b.account(ctx)
	if err != nil {
		return err
	}
	if fresh {
		return b.beginNew(ctx, account)
	}
	if known.Account != "" && account != "" && known.Account != account {
		return fmt.Errorf("the state file %s is of Stripe's account %s, and the key is of %s: give each its own file", b.State, known.Account, account)
	}
	b.store.change(func(s *state) { s.Account = cmp.Or(account, s.Account) })
	_, _, err = b.page(ctx)
	return err
}

// account returns the id of Stripe's account, or an empty string if the key may not read the account.
func (b *bridge) account(ctx context.Context) (string, error) {
	account, err := b.stripe.V1Accounts.Retrieve(ctx, nil)
	if refused, ok := errors.AsType[*stripe.Error](err); ok && refused.HTTPStatusCode == http.StatusForbidden {
		b.log.Warn("the key may not read Stripe's account: a state file of another account of this mode would not be noticed")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask Stripe for its account: %w", plain(err))
	}
	return account.ID, nil
}

func (b *bridge) beginNew(ctx context.Context, account string) error {
	if b.Start == "" {
		return badSetting("start", "must be said, since there is no state file %s: all sends every invoice that is open and whose event quotad keeps, and now only those finalized from now on. After a loss of the file take all: what is at Stripe is found there",
			b.State)
	}
	b.store.change(func(s *state) { s.Mode, s.Account = b.mode(), account })
	for b.Start == "now" {
		items, _, err := b.page(ctx)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			break
		}
		b.store.change(func(s *state) { s.pass(items[len(items)-1]) })
	}
	return b.store.save()
}

// serve runs the bridge until ctx ends or until an error requires a person's decision.
func (b *bridge) serve(ctx context.Context) error {
	defer b.store.close()
	ended, err := b.listen(ctx)
	if err != nil {
		return err
	}
	defer ended()
	b.log.Info("the bridge runs", "quotad", b.QuotadURL, "stripe_mode", b.mode(), "collection", b.Collection)
	for ctx.Err() == nil {
		if err := b.round(ctx); err != nil {
			return err
		}
		b.rest(ctx)
	}
	b.log.Info("the bridge stops")
	return b.store.save()
}

// rest waits until the next poll or until a webhook has queued an invoice.
func (b *bridge) rest(ctx context.Context) {
	timer := time.NewTimer(b.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-b.wake:
	case <-timer.C:
	}
}

// round does all the work that is due, once. If it returns an error, the bridge must stop until a person has
// resolved the error.
func (b *bridge) round(ctx context.Context) error {
	if err := b.follow(ctx); err != nil {
		if _, stop := errors.AsType[*feedError](err); stop {
			return errors.Join(err, b.store.save())
		}
		b.complain(ctx, "quotad's events cannot be read now: they are asked for again", err)
	}
	now := time.Now()
	if !now.Before(b.askStripeAt) {
		b.askStripeAt = now.Add(b.StripePoll)
		if err := b.followStripe(ctx); err != nil {
			b.complain(ctx, "Stripe's events cannot be read now: they are asked for again", err)
		}
	}
	if !now.Before(b.sweepAt) {
		b.sweepAt = now.Add(b.Sweep)
		b.store.change(func(s *state) {
			for invoice := range s.Open {
				s.ask(invoice, now)
			}
		})
	}
	b.work(ctx)
	b.keep()
	return nil
}

// keep writes the state file. If the write fails, the bridge continues, because after a crash it would only
// repeat work whose result it can read at Stripe.
func (b *bridge) keep() {
	b.saved = time.Now()
	if err := b.store.save(); err != nil {
		b.log.Error("the state file cannot be written: it is tried again", "error", err)
	}
}

func (b *bridge) complain(ctx context.Context, text string, err error) {
	if ctx.Err() == nil {
		b.log.Error(text, "error", plain(err))
	}
}

// work settles all invoices that are due, the longest waiting first. It ends early if quotad or Stripe is
// unreachable.
func (b *bridge) work(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	turns := make(chan struct{}, b.Workers)
	var gone atomic.Bool
	for _, id := range b.due(time.Now()) {
		turns <- struct{}{} // a slot becomes free within jobWait
		if ctx.Err() != nil || gone.Load() {
			return
		}
		if time.Since(b.saved) > saveEvery {
			b.keep()
		}
		all.Go(func() {
			defer func() { <-turns }()
			if err := b.one(ctx, id); err != nil && away(err) {
				gone.Store(true)
			}
		})
	}
}

// one settles one invoice.
func (b *bridge) one(ctx context.Context, id string) error {
	var j job
	b.store.read(func(s *state) { j = *s.Work[id] })
	within, cancel := context.WithTimeout(ctx, jobWait)
	defer cancel()
	err := b.settle(within, id, &j)
	if ctx.Err() == nil { // otherwise the work was interrupted, so the job stays
		b.done(id, j, err)
	}
	return err
}

// due returns the invoices that are due at now.
func (b *bridge) due(now time.Time) (ids []string) {
	b.store.read(func(s *state) {
		for id, j := range s.Work {
			if !j.Next.After(now) {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(x, y string) int {
			return cmp.Or(s.Work[x].Next.Compare(s.Work[y].Next), cmp.Compare(x, y))
		})
	})
	return ids
}

// done records the result of a job. If the invoice was queued again during the job, the job stays.
func (b *bridge) done(id string, was job, err error) {
	person, _ := errors.AsType[*personError](err)
	if person != nil {
		b.tell(notice{ID: person.kind + " " + id, Invoice: id, Stripe: person.stripe, Text: person.text})
	}
	b.store.change(func(s *state) {
		j := s.Work[id]
		switch {
		case j == nil:
		case (err == nil || person != nil) && j.Gen == was.Gen:
			delete(s.Work, id)
		case err == nil || person != nil:
			j.Tries, j.Refused, j.Error = 0, 0, ""
		default:
			b.failed.Add(1)
			j.Tries++
			if refused(err) {
				j.Refused++
			}
			j.Error = plain(err).Error()
			pause := b.pauseAfter(j.Tries, err)
			j.Next = time.Now().Add(pause)
			b.log.Warn("an invoice could not be brought up to date: it is tried again", "invoice", id, "tries", j.Tries, "pause", pause, "error", j.Error)
		}
	})
}

func (b *bridge) pauseAfter(tries int, err error) time.Duration {
	most := mostPause
	if away(err) {
		most = awayPause
	}
	return min(most, cmp.Or(b.pause, firstPause)<<min(tries-1, 16))
}

// tell reports a notice to a person: once in the log, and in the state until the notice is dismissed.
func (b *bridge) tell(n notice) {
	n.At = time.Now().UTC().Truncate(time.Second)
	added := false
	b.store.change(func(s *state) { added = s.tell(n) })
	if added {
		b.log.Error("a person has to see to this: "+n.Text, "notice", n.ID, "invoice", n.Invoice, "stripe", n.Stripe)
	}
}
