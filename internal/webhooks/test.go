package webhooks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/plans/store"
)

// Tested is the result of a test.
type Tested struct {
	Status  int    // of the answer; 0: there was none
	Failed  string // why it failed; "": the answer was a 2xx
	Enabled bool   // the webhook was disabled, and is not any more
}

const secretsOf = `SELECT url, secret, CASE WHEN old_until > clock_timestamp() THEN old_secret END FROM webhooks WHERE id = $1`

const (
	enableWebhook = `UPDATE webhooks SET disabled_at = NULL, disabled_for = NULL WHERE id = $1 AND disabled_at IS NOT NULL`
	endFailing    = `UPDATE webhooks SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL`
)

// testType is the event type of a test. No event of the feed has this type.
const testType = "webhook.test"

// Test sends a test event to a webhook at once and waits for the answer, usually for 3 s. If the webhook accepts
// the event, it no longer counts as failing, and it is enabled again if it was disabled. Errors: ErrUnknown.
func (s *Sender) Test(ctx context.Context, id string) (is Tested, err error) {
	at, err := s.now(ctx)
	if err != nil {
		return is, err
	}
	var to string
	var secret, old []byte
	rows, _ := s.webhooks.pool.Query(ctx, secretsOf, id)
	_, err = pgx.ForEachRow(rows, []any{&to, &secret, &old}, func() error { return nil })
	if err == nil && to == "" {
		err = ErrUnknown
	}
	if err != nil {
		return is, store.Classify(err)
	}
	secrets := [][]byte{secret}
	if old != nil {
		secrets = append(secrets, old)
	}
	var random [12]byte
	_, _ = rand.Read(random[:])
	body, err := json.Marshal(client.Event{Type: testType, At: time.UnixMicro(at).UTC(), Data: json.RawMessage("{}")})
	if err != nil {
		return is, err
	}
	within, cancel := context.WithTimeout(ctx, s.webhooks.test())
	defer cancel()
	o := s.clients.post(within, to, secrets, "test_"+hex.EncodeToString(random[:]), time.UnixMicro(at), body)
	is.Status, is.Failed = o.status, o.failed
	err = s.webhooks.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if o.failed == "" {
			done, err := tx.Exec(ctx, enableWebhook, id)
			if err != nil {
				return err
			}
			is.Enabled = done.RowsAffected() > 0
			if _, err := tx.Exec(ctx, endFailing, id); err != nil {
				return err
			}
		}
		return store.Audit(ctx, tx, plans.Audited{Action: "test", Target: "webhooks/" + id, After: struct {
			Status  int  `json:"status"`
			Enabled bool `json:"enabled"`
		}{is.Status, is.Enabled}})
	})
	return is, err
}
