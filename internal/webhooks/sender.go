package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/events"
	"quotad/internal/plans/store"
	"quotad/internal/postgres"
	"quotad/internal/quota/upkeep"
)

const (
	lookEvery = 250 * time.Millisecond
	// perWebhook is the number of concurrent sends of a node to one webhook.
	perWebhook = 8
	// retried is the time for which a delivery is retried. If a webhook has accepted nothing for disabledAfter,
	// it is disabled when its next delivery is given up.
	retried, disabledAfter = 24 * time.Hour, 5 * 24 * time.Hour
)

// pauses are the pauses before the next attempts. The last pause is repeated.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour}

func pauseAfter(attempts int) time.Duration { return pauses[min(max(attempts, 1), len(pauses))-1] }

// Sender sends deliveries that are due. All nodes run a Sender on the same database.
type Sender struct {
	webhooks *Webhooks
	clients  *clients
	now      func(context.Context) (int64, error)
	log      *slog.Logger
	pause    func(attempts int) time.Duration // before the next attempt
	wake     chan struct{}                    // a send has ended, or there is room for another

	mu       sync.Mutex
	underWay map[string]int // by webhook; also what has ended and is not noted yet
	ended    map[string][]*taken
	noting   map[string]bool
	sends    sync.WaitGroup

	delivered, failed, dead atomic.Int64
}

// NewSender returns a Sender. now returns the database's time, µs since the Unix epoch. If log is nil, the
// Sender logs to slog.Default.
func NewSender(webhooks *Webhooks, now func(context.Context) (int64, error), log *slog.Logger) *Sender {
	if log == nil {
		log = slog.Default()
	}
	return &Sender{
		webhooks: webhooks, clients: newClients(webhooks.private, webhooks.within()), now: now, log: log, pause: pauseAfter,
		wake: make(chan struct{}, 1), underWay: make(map[string]int), ended: make(map[string][]*taken), noting: make(map[string]bool),
	}
}

// Sent returns how many attempts of this node were accepted and how many failed, and how many deliveries were
// given up.
func (s *Sender) Sent() (delivered, failed, dead int64) {
	return s.delivered.Load(), s.failed.Load(), s.dead.Load()
}

// Run sends deliveries until ctx ends. It then aborts the sends that are in progress, which are sent again
// later.
func (s *Sender) Run(ctx context.Context) {
	looks := upkeep.Repeated{
		Log: s.log, First: lookEvery, Pause: 0, Do: s.turn,
		Fails: "events cannot be sent to webhooks now: they wait, and it is tried again", Works: "events are sent to webhooks again",
	}
	looks.Run(ctx)
	s.sends.Wait()
	s.note(context.WithoutCancel(ctx)) // what ended while others were noted
	s.sends.Wait()
	s.clients.closeIdle()
}

// turn records the outcomes of finished sends, leases deliveries that are due and begins to send them. It then
// waits until a send ends or the next turn is due.
func (s *Sender) turn(ctx context.Context) error {
	s.note(context.WithoutCancel(ctx))
	err := s.begin(ctx)
	rest := time.NewTimer(lookEvery)
	defer rest.Stop()
	if err == nil {
		select {
		case <-s.wake:
			return nil
		default:
		}
	}
	select {
	case <-ctx.Done():
	case <-rest.C:
	case <-s.wake:
	}
	return err
}

// taken is a delivery that this node has leased.
type taken struct {
	Webhook   string
	URL       string
	Secret    []byte
	OldSecret []byte // nil: none signs beside it
	Attempt   int
	Event     events.Shown
	outcome
}

// loosely runs do in a transaction that need not survive a crash of the server, so that the commit does not wait
// for the disk. If the transaction is lost, its deliveries are sent again.
func (s *Sender) loosely(ctx context.Context, do func(tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.webhooks.step())
	defer cancel()
	return store.Classify(pgx.BeginFunc(ctx, s.webhooks.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		return do(tx)
	}))
}

// takeDue leases a few deliveries of each webhook, so that a webhook with many deliveries does not delay the
// others. It skips rows that another node is leasing.
const takeDue = `
	WITH due AS (
		SELECT d.event, d.webhook FROM webhooks w
		LEFT JOIN unnest($1::text[], $2::integer[]) AS busy (id, sends) ON busy.id = w.id
		CROSS JOIN LATERAL (
			SELECT event, webhook FROM deliveries WHERE webhook = w.id AND state = 'waiting' AND due_at <= clock_timestamp()
			ORDER BY due_at LIMIT $3 - coalesce(busy.sends, 0) FOR UPDATE SKIP LOCKED) d
		WHERE w.disabled_at IS NULL
	), leased AS (
		UPDATE deliveries d SET attempts = d.attempts + 1, due_at = clock_timestamp() + $4::interval
		FROM due WHERE d.event = due.event AND d.webhook = due.webhook RETURNING d.event, d.webhook, d.attempts)
	SELECT w.id, w.url, w.secret, CASE WHEN w.old_until > clock_timestamp() THEN w.old_secret END, l.attempts,
		e.id, e.type, e.at, c.key, e.test_clock, e.data
	FROM leased l JOIN webhooks w ON w.id = l.webhook JOIN events e ON e.id = l.event LEFT JOIN customers c ON c.id = e.customer`

// begin leases deliveries that are due and begins to send them.
func (s *Sender) begin(ctx context.Context) error {
	var ids []string
	var sends []int
	s.mu.Lock()
	for id, n := range s.underWay {
		ids, sends = append(ids, id), append(sends, n)
	}
	s.mu.Unlock()
	due, err := s.take(ctx, ids, sends)
	if err != nil {
		return err
	}
	for i := range due {
		d := &due[i]
		s.mu.Lock()
		s.underWay[d.Webhook]++
		s.mu.Unlock()
		s.sends.Go(func() { s.send(ctx, d) })
	}
	return nil
}

func (s *Sender) take(ctx context.Context, ids []string, sends []int) (due []taken, err error) {
	err = s.loosely(ctx, func(tx pgx.Tx) (err error) {
		rows, _ := tx.Query(ctx, takeDue, ids, sends, perWebhook, s.webhooks.lease())
		due, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t taken, err error) {
			e := &t.Event
			return t, row.Scan(&t.Webhook, &t.URL, &t.Secret, &t.OldSecret, &t.Attempt, &e.ID, &e.Type, &e.At, &e.Customer, &e.TestClock, &e.Data)
		})
		return err
	})
	return due, err
}

// send sends a delivery and queues its outcome. If there is no outcome, the lease expires and the delivery is
// sent again.
func (s *Sender) send(ctx context.Context, d *taken) {
	known := s.post(ctx, d)
	s.mu.Lock()
	if known {
		s.ended[d.Webhook] = append(s.ended[d.Webhook], d)
	} else {
		s.leave(d.Webhook, 1)
	}
	s.mu.Unlock()
	s.awake()
}

// leave removes deliveries from the sends in progress. The caller holds the lock.
func (s *Sender) leave(webhook string, n int) {
	if s.underWay[webhook] -= n; s.underWay[webhook] == 0 {
		delete(s.underWay, webhook)
	}
}

// awake starts the next turn.
func (s *Sender) awake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// post sends a delivery, and reports whether the outcome is known.
func (s *Sender) post(ctx context.Context, d *taken) (known bool) {
	at, err := s.now(ctx)
	if err != nil {
		return false // in an outage there is nothing to be noted either
	}
	body, err := json.Marshal(d.Event.Show())
	if err != nil {
		s.log.Error("an event cannot be sent", "event", d.Event.ID, "error", err)
		return false
	}
	secrets := [][]byte{d.Secret}
	if d.OldSecret != nil {
		secrets = append(secrets, d.OldSecret)
	}
	d.outcome = s.clients.post(ctx, d.URL, secrets, strconv.FormatInt(d.Event.ID, 10), time.UnixMicro(at), body)
	return d.status != 0 || ctx.Err() == nil // else the node stops, and broke it off before an answer
}

// An outcome counts only under the lease of its attempt. A node that was too slow has lost the lease to another
// node.
const (
	noteDelivered = `
		WITH well AS (UPDATE webhooks SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL)
		UPDATE deliveries SET state = 'delivered', last_at = clock_timestamp(), status = $4, error = NULL
		WHERE event = $2 AND webhook = $1 AND attempts = $3 AND state = 'waiting'`
	noteFailed = `
		WITH ill AS (UPDATE webhooks SET failing_since = clock_timestamp() WHERE id = $1 AND failing_since IS NULL)
		UPDATE deliveries SET last_at = clock_timestamp(), status = nullif($4::integer, 0), error = $5,
			state = CASE WHEN clock_timestamp() >= since + $6::interval THEN 'dead' ELSE 'waiting' END,
			due_at = least(clock_timestamp() + $7::interval, since + $6::interval)
		WHERE event = $2 AND webhook = $1 AND attempts = $3 AND state = 'waiting' RETURNING state`
)

// note begins to write the outcomes of finished sends, one transaction at a time for each webhook. If the
// outcomes cannot be written, the leases expire and the deliveries are sent again.
func (s *Sender) note(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for webhook, all := range s.ended {
		if s.noting[webhook] {
			continue // more ends meanwhile, and goes with the next
		}
		delete(s.ended, webhook)
		s.noting[webhook] = true
		s.sends.Go(func() {
			if err := s.noteAll(ctx, webhook, all); err != nil {
				s.log.Warn("what became of events that were sent cannot be noted: they are sent again", "webhook", webhook, "events", len(all), "error", err)
			}
			s.mu.Lock()
			delete(s.noting, webhook)
			s.leave(webhook, len(all))
			s.mu.Unlock()
			s.awake()
		})
	}
}

// noteAll writes and counts the outcomes of deliveries to one webhook.
func (s *Sender) noteAll(ctx context.Context, webhook string, all []*taken) error {
	well, dead := new(pgx.Batch), 0
	var failed []*taken
	for _, d := range all {
		if d.failed != "" {
			failed = append(failed, d)
			continue
		}
		well.Queue(noteDelivered, webhook, d.Event.ID, d.Attempt, d.status)
	}
	err := s.loosely(ctx, func(tx pgx.Tx) error {
		// Every writer of a webhook's deliveries locks the webhook first, except a writer that only leases some
		// of them.
		_, err := one(ctx, tx, lockWebhook, webhook)
		if err == nil {
			err = postgres.Send(ctx, tx, well)
		}
		for i := 0; i < len(failed) && err == nil; i++ {
			var died bool
			if died, err = s.noteOne(ctx, tx, failed[i]); died {
				dead++
			}
		}
		return err
	})
	switch {
	case errors.Is(err, ErrUnknown): // it was deleted meanwhile
		return nil
	case err != nil:
		return err
	}
	s.delivered.Add(int64(well.Len()))
	s.failed.Add(int64(len(failed)))
	s.dead.Add(int64(dead))
	return nil
}

// noteOne writes that a delivery failed. died means that the delivery is given up.
func (s *Sender) noteOne(ctx context.Context, tx pgx.Tx, d *taken) (died bool, err error) {
	var state string
	err = tx.QueryRow(ctx, noteFailed, d.Webhook, d.Event.ID, d.Attempt, d.status, d.failed, retried, s.pause(d.Attempt)).Scan(&state)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // it was somebody else's
		return false, nil
	case err != nil:
		return false, err
	case d.status == http.StatusGone:
		err = s.disable(ctx, tx, d.Webhook, Gone, 0)
	case state == Dead:
		err = s.disable(ctx, tx, d.Webhook, Failing, disabledAfter)
	}
	return state == Dead, err
}

const (
	disableWebhook = `
		UPDATE webhooks SET disabled_at = clock_timestamp(), disabled_for = $2
		WHERE id = $1 AND disabled_at IS NULL AND failing_since <= clock_timestamp() - $3::interval
		RETURNING (extract(epoch FROM disabled_at) * 1000000)::bigint`
	endDeliveries = `UPDATE deliveries SET state = 'dead' WHERE webhook = $1 AND state = 'waiting'`
)

// disable disables a webhook that has failed for too long, and reports this by an event. Its pending deliveries
// are given up.
func (s *Sender) disable(ctx context.Context, tx pgx.Tx, id, why string, failing time.Duration) error {
	var at int64
	switch err := tx.QueryRow(ctx, disableWebhook, id, why, failing).Scan(&at); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	if _, err := tx.Exec(ctx, endDeliveries, id); err != nil {
		return err
	}
	s.log.Warn("a webhook is disabled: nothing is sent to it any more", "webhook", id, "reason", why)
	return events.Write(ctx, tx, events.Event{Type: events.WebhookDisabled, At: at, Data: client.EventData{ID: id, Reason: why}})
}
