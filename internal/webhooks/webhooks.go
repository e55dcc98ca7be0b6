package webhooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quotad/internal/events"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
	"quotad/internal/quota/model"
)

// Sentinel errors, which the API maps to problems.
var (
	ErrUnknown  = errors.New("no such webhook")
	ErrTooMany  = errors.New("there are 20 webhooks already, which is the most: delete one that is not needed")
	ErrDisabled = errors.New("the webhook is disabled: POST …/test enables it again, once its answer is a 2xx")
	ErrReplay   = errors.New("these are more than 100,000 events, the most for one replay: choose a shorter time")
)

const (
	maxWebhooks = 20 // each has connections and rows of its own for each event
	maxURL      = 2000
	// bothSign is the time for which a replaced secret still signs beside its successor.
	bothSign      = 24 * time.Hour
	defaultWithin = 15 * time.Second
)

// The reasons for which a webhook is disabled.
const (
	Gone    = "gone"    // it answered 410
	Failing = "failing" // nothing could be delivered for 5 days
)

// Webhook is a URL to which events are sent.
type Webhook struct {
	ID           string
	URL          string
	Types        []string // empty: all
	CreatedAt    time.Time
	OldUntil     *time.Time // until when the secret of before signs, too
	FailingSince *time.Time
	DisabledAt   *time.Time
	DisabledFor  *string // Gone or Failing
}

// Webhooks reads and writes webhooks in the database. It is safe for concurrent use.
type Webhooks struct {
	// Within bounds an attempt to send, from resolving the name to reading the answer. 0 means 15 s. The other
	// bounds are parts of Within: see operation, step, test and lease. Set it before the first use.
	Within time.Duration

	pool    *pgxpool.Pool
	private bool // private addresses may be dialled
}

// New returns the webhooks of a node. private allows private addresses, and loopback addresses without TLS.
func New(pool *pgxpool.Pool, private bool) *Webhooks { return &Webhooks{pool: pool, private: private} }

func (ws *Webhooks) within() time.Duration { return cmp.Or(ws.Within, defaultWithin) }

// operation bounds every operation of Webhooks, and step bounds each transaction of a Sender. Both include the
// wait for a connection. test bounds a test, because a person waits for its answer.
func (ws *Webhooks) operation() time.Duration { return ws.within() * 2 / 3 }
func (ws *Webhooks) step() time.Duration      { return ws.within() / 3 }
func (ws *Webhooks) test() time.Duration      { return ws.within() / 5 }

// lease is the time after which a send without a recorded outcome is repeated. It is longer than a send and the
// writing of its outcome.
func (ws *Webhooks) lease() time.Duration { return ws.within() * 4 }

// write runs do in a transaction. It returns the errors of do, store.Classify and store.ClassifyCommit.
func (ws *Webhooks) write(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, ws.operation())
	defer cancel()
	tx, err := ws.pool.Begin(ctx)
	if err != nil {
		return store.Classify(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after the commit
	if err := do(ctx, tx); err != nil {
		return store.Classify(err)
	}
	return store.ClassifyCommit(tx.Commit(ctx))
}

const columns = ` id, url, types, created_at, CASE WHEN old_until > clock_timestamp() THEN old_until END, failing_since, disabled_at, disabled_for `

func scan(row pgx.CollectableRow) (w Webhook, err error) {
	err = row.Scan(&w.ID, &w.URL, &w.Types, &w.CreatedAt, &w.OldUntil, &w.FailingSince, &w.DisabledAt, &w.DisabledFor)
	w.CreatedAt = w.CreatedAt.UTC()
	for _, at := range []*time.Time{w.OldUntil, w.FailingSince, w.DisabledAt} {
		if at != nil {
			*at = at.UTC()
		}
	}
	return w, err
}

// one reads the webhook that a statement returns. Errors: ErrUnknown.
func one(ctx context.Context, tx pgx.Tx, statement string, args ...any) (Webhook, error) {
	rows, _ := tx.Query(ctx, statement, args...)
	w, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknown
	}
	return w, err
}

// check returns the faults of a requested webhook.
func (ws *Webhooks) check(to string, types []string) error {
	var bad model.FieldErrors
	if why := ws.checkURL(to); why != "" {
		bad = append(bad, model.FieldError{Field: "url", Detail: why})
	}
	for i, name := range types {
		switch {
		case !events.Known(name):
			bad = append(bad, model.FieldError{Field: "types", Detail: "has " + strconv.Quote(plans.Shorten(name)) +
				", which is no type of events: they are " + strings.Join(events.Types, ", ")})
		case slices.Contains(types[:i], name):
			bad = append(bad, model.FieldError{Field: "types", Detail: "has " + name + " twice"})
		}
		if len(bad) > len(events.Types) {
			break
		}
	}
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// checkURL returns the reason why events cannot be sent to a URL, or an empty string if the URL itself shows no
// reason.
func (ws *Webhooks) checkURL(to string) string {
	const want = "must be an https URL such as https://example.com/quotad, of at most 2000 bytes"
	u, err := url.Parse(to)
	if err != nil || len(to) > maxURL || !plans.PlainText(to) || u.Hostname() == "" || u.Opaque != "" {
		return want
	}
	switch host := u.Hostname(); {
	case u.User != nil:
		return "must have no name and password: what is sent is signed"
	case u.Fragment != "" || strings.Contains(to, "#"):
		return "must have no fragment (#…)"
	case !dialled(u.Port()):
		return "must have a port from 1 to 65535, or none"
	case u.Scheme == "http" && ws.private && isLoopback(host):
		return ""
	case u.Scheme == "http" && isLoopback(host):
		return "is of this machine, without TLS: only --webhook-allow-private lets webhooks have such"
	case u.Scheme != "https":
		return want
	default:
		if address, err := netip.ParseAddr(host); err == nil {
			if err := allowed(address, false, ws.private); err != nil {
				return err.Error()
			}
		}
		return ""
	}
}

// dialled reports whether a port is valid. An empty port means the default of the scheme.
func dialled(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// isLoopback reports whether a host name means this machine.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// secretPrefix is the prefix of shown secrets, as the Standard Webhooks specification requires.
const secretPrefix = "whsec_"

// newSecret returns a new secret. shown is its form for people.
func newSecret() (secret []byte, shown string) {
	secret = make([]byte, 32)
	_, _ = rand.Read(secret) // never fails; the program would have been ended
	return secret, secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// lockAll prevents other transactions from creating webhooks and from assigning ids to events until the commit.
const lockAll = `SELECT number FROM event_number FOR UPDATE`

const insertWebhook = `
	INSERT INTO webhooks (id, url, types, secret, created_at) VALUES ($1, $2, $3, $4, clock_timestamp()) RETURNING` + columns

// Create creates a webhook, which receives the events that are shown from now on. Only Create and Rotate return
// the secret, which signs the events. Errors: model.FieldErrors, ErrTooMany.
func (ws *Webhooks) Create(ctx context.Context, to string, types []string) (w Webhook, secret string, err error) {
	if err := ws.check(to, types); err != nil {
		return w, "", err
	}
	if types == nil {
		types = []string{}
	}
	raw, secret := newSecret()
	id := make([]byte, 12)
	_, _ = rand.Read(id)
	err = ws.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var last, there int64
		if err := tx.QueryRow(ctx, lockAll).Scan(&last); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhooks`).Scan(&there); err != nil {
			return err
		}
		if there >= maxWebhooks {
			return ErrTooMany
		}
		if w, err = one(ctx, tx, insertWebhook, "wh_"+base64.RawURLEncoding.EncodeToString(id), to, types, raw); err != nil {
			return err
		}
		return store.Audit(ctx, tx, plans.Audited{Action: plans.AuditCreate, Target: "webhooks/" + w.ID, After: audit(&w)})
	})
	return w, secret, err
}

// audit returns the form of a webhook that the audit trail stores.
func audit(w *Webhook) any {
	return struct {
		URL   string   `json:"url"`
		Types []string `json:"types"`
	}{w.URL, w.Types}
}

const listWebhooks = `SELECT` + columns + `FROM webhooks WHERE id > $1 ORDER BY id LIMIT $2`

const kindWebhooks = "webhooks"

// List returns the webhooks, including disabled ones. Errors: model.FieldErrors for a wrong page.
func (ws *Webhooks) List(ctx context.Context, page plans.Page) (*plans.List[Webhook], error) {
	limit, after, err := store.OpenPage(page, kindWebhooks, plans.ValidKey)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ws.operation())
	defer cancel()
	rows, _ := ws.pool.Query(ctx, listWebhooks, after, limit+1)
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, store.Classify(err)
	}
	return store.Paged(found, limit, kindWebhooks, func(w Webhook) string { return w.ID }), nil
}

const (
	deleteWebhook    = `DELETE FROM webhooks WHERE id = $1 RETURNING` + columns
	deleteDeliveries = `DELETE FROM deliveries WHERE webhook = $1`
)

// Delete removes a webhook and its pending deliveries. A send that is in progress is not stopped. Errors:
// ErrUnknown.
func (ws *Webhooks) Delete(ctx context.Context, id string) error {
	return ws.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var last int64
		if err := tx.QueryRow(ctx, lockAll).Scan(&last); err != nil { // or ids given meanwhile leave rows
			return err
		}
		w, err := one(ctx, tx, deleteWebhook, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteDeliveries, id); err != nil {
			return err
		}
		return store.Audit(ctx, tx, plans.Audited{Action: plans.AuditDelete, Target: "webhooks/" + id, Before: audit(&w)})
	})
}

const rotateSecret = `
	UPDATE webhooks SET old_secret = secret, old_until = clock_timestamp() + $3::interval, secret = $2 WHERE id = $1 RETURNING` + columns

// Rotate replaces a webhook's secret. Both secrets sign for a day, and a secret of an earlier rotation stops
// signing at once. Errors: ErrUnknown.
func (ws *Webhooks) Rotate(ctx context.Context, id string) (w Webhook, secret string, err error) {
	raw, secret := newSecret()
	err = ws.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if w, err = one(ctx, tx, rotateSecret, id, raw, bothSign); err != nil {
			return err
		}
		return store.Audit(ctx, tx, plans.Audited{Action: "rotate", Target: "webhooks/" + id, After: audit(&w)})
	})
	return w, secret, err
}
