package client

import (
	"context"
	"net/url"
	"time"
)

// WebhookRequest is the body of POST /v1/webhooks.
type WebhookRequest struct {
	URL   string   `json:"url" minLength:"1" maxLength:"2000" doc:"Where events are sent, an https URL."`
	Types []string `json:"types,omitempty" doc:"Types of events that are sent. When left out, all."`
}

// Webhook is a URL that events are sent to.
type Webhook struct {
	ID           string     `json:"id" doc:"The webhook's id."`
	URL          string     `json:"url" doc:"The https URL to which events are sent."`
	Types        []string   `json:"types" doc:"Of the events that are sent. Empty: all."`
	CreatedAt    time.Time  `json:"created_at" doc:"The instant at which the webhook was made, RFC 3339 in UTC."`
	OldUntil     *time.Time `json:"old_secret_until" doc:"Until then the secret of before signs, too. Null: there is none."`
	FailingSince *time.Time `json:"failing_since" doc:"Since then nothing could be delivered. Null: the last delivery was taken."`
	DisabledAt   *time.Time `json:"disabled_at" doc:"Since then nothing is sent. Null: it is not disabled."`
	DisabledFor  *string    `json:"disabled_for" doc:"gone: it answered 410. failing: nothing could be delivered for 5 days. Null: it is not disabled."`
}

// NewWebhook is a webhook with a secret that was just made.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"Signs what is sent. It is shown once."`
}

// Delivery is an event that is sent to a webhook.
type Delivery struct {
	Event    int64      `json:"event" doc:"The id of the event, and the webhook-id of what is sent."`
	Type     string     `json:"type" doc:"Of the event."`
	State    string     `json:"state" enum:"waiting,delivered,dead" doc:"dead: it was retried for a day, or the webhook is disabled."`
	Attempts int        `json:"attempts" doc:"The number of attempts so far."`
	DueAt    *time.Time `json:"due_at" doc:"When it is tried next. Null where it is not."`
	LastAt   *time.Time `json:"last_at" doc:"When the last attempt ended, or null."`
	Status   *int       `json:"status" doc:"The status that the last attempt was answered. Null: none."`
	Error    *string    `json:"error" doc:"Why the last attempt failed, or null."`
}

// WebhookTest is what became of a test.
type WebhookTest struct {
	Delivered bool    `json:"delivered" doc:"The answer was a 2xx."`
	Status    *int    `json:"status" doc:"Of the answer. Null: there was none."`
	Error     *string `json:"error" doc:"Why it failed, or null."`
	Enabled   bool    `json:"enabled" doc:"The webhook was disabled, and is not any more."`
}

// ReplayRequest is the body of POST /v1/webhooks/{id}/replay.
type ReplayRequest struct {
	From string  `json:"from" format:"date-time" doc:"Events that were shown then or later."`
	To   *string `json:"to,omitempty" format:"date-time" doc:"Events that were shown before. Null or left out: until now."`
}

// Replayed is how much is sent again.
type Replayed struct {
	Deliveries int64 `json:"deliveries" doc:"Events that are sent from now on. Those that wait anyway are not among them."`
}

// Webhooks lists the webhooks.
func (c *Client) Webhooks(ctx context.Context, query url.Values) (List[Webhook], error) {
	return get[List[Webhook]](ctx, c, with(at("webhooks"), query))
}

// Deliveries lists what was sent to a webhook, the newest event first.
func (c *Client) Deliveries(ctx context.Context, id string, query url.Values) (List[Delivery], error) {
	return get[List[Delivery]](ctx, c, with(at("webhooks", id, "deliveries"), query))
}

// DeleteWebhook removes a webhook and what was to be sent to it.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.remove(ctx, at("webhooks", id))
}

// RotateWebhook gives a webhook another secret.
func (c *Client) RotateWebhook(ctx context.Context, id string) (NewWebhook, error) {
	return post[NewWebhook](ctx, c, at("webhooks", id, "rotate"), nil)
}

// TestWebhook sends a test to a webhook, and waits for its answer.
func (c *Client) TestWebhook(ctx context.Context, id string) (WebhookTest, error) {
	return post[WebhookTest](ctx, c, at("webhooks", id, "test"), nil)
}
