package client

import (
	"context"
	"net/url"
	"time"
)

// WebhookRequest is the body of POST /v1/webhooks.
type WebhookRequest struct {
	URL   string   `json:"url" minLength:"1" maxLength:"2000" doc:"The https URL to which events are sent."`
	Types []string `json:"types,omitempty" doc:"The types of the events that are sent. When left out, all events are sent."`
}

// Webhook is a URL to which events are sent.
type Webhook struct {
	ID           string     `json:"id" doc:"The webhook's id."`
	URL          string     `json:"url" doc:"The https URL to which events are sent."`
	Types        []string   `json:"types" doc:"The types of the events that are sent. If empty, all events are sent."`
	CreatedAt    time.Time  `json:"created_at" doc:"The instant at which the webhook was made, RFC 3339 in UTC."`
	OldUntil     *time.Time `json:"old_secret_until" doc:"The instant until which the previous secret signs, too, RFC 3339 in UTC. Null if there is no such secret."`
	FailingSince *time.Time `json:"failing_since" doc:"The instant since which no event could be delivered, RFC 3339 in UTC. Null if the last delivery was accepted."`
	DisabledAt   *time.Time `json:"disabled_at" doc:"The instant at which the webhook was disabled, RFC 3339 in UTC. Null if the webhook is not disabled."`
	DisabledFor  *string    `json:"disabled_for" enum:"gone,failing" doc:"The reason why the webhook is disabled, or null.\n- gone: the receiver answered 410.\n- failing: nothing could be delivered for 5 days."`
}

// NewWebhook is a webhook with its new secret.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"The secret that signs what is sent. The secret is shown once."`
}

// Delivery is an event that is sent to a webhook.
type Delivery struct {
	Event    int64      `json:"event" doc:"The id of the event. It is also the webhook-id of what is sent."`
	Type     string     `json:"type" doc:"The type of the event."`
	State    string     `json:"state" enum:"waiting,delivered,dead" doc:"The state of the delivery. dead means that it was retried for a day, or that the webhook is disabled."`
	Attempts int        `json:"attempts" doc:"The number of attempts so far."`
	DueAt    *time.Time `json:"due_at" doc:"The instant of the next attempt, RFC 3339 in UTC. Null if no attempt follows."`
	LastAt   *time.Time `json:"last_at" doc:"The instant at which the last attempt ended, RFC 3339 in UTC. Null before the first attempt."`
	Status   *int       `json:"status" doc:"The HTTP status of the answer to the last attempt. Null without an answer."`
	Error    *string    `json:"error" doc:"The reason why the last attempt failed, for people. Null if it did not fail."`
}

// WebhookTest is the result of a test.
type WebhookTest struct {
	Delivered bool    `json:"delivered" doc:"True if the answer was a 2xx."`
	Status    *int    `json:"status" doc:"The HTTP status of the answer. Null without an answer."`
	Error     *string `json:"error" doc:"The reason why the test failed, for people. Null if it did not fail."`
	Enabled   bool    `json:"enabled" doc:"True if the webhook was disabled, and this test enabled it again."`
}

// ReplayRequest is the body of POST /v1/webhooks/{id}/replay.
type ReplayRequest struct {
	From string  `json:"from" format:"date-time" doc:"The start of the time whose events are sent, RFC 3339. An event counts by when it was first shown."`
	To   *string `json:"to,omitempty" format:"date-time" doc:"The exclusive end of the time whose events are sent, RFC 3339. If null or absent, now."`
}

// Replayed is the number of events that are sent again.
type Replayed struct {
	Deliveries int64 `json:"deliveries" doc:"The number of events that are sent from now on. Events that wait anyway are not among them."`
}

// Webhooks lists the webhooks.
func (c *Client) Webhooks(ctx context.Context, query url.Values) (List[Webhook], error) {
	return get[List[Webhook]](ctx, c, with(at("webhooks"), query))
}

// Deliveries lists the deliveries to a webhook, the newest event first.
func (c *Client) Deliveries(ctx context.Context, id string, query url.Values) (List[Delivery], error) {
	return get[List[Delivery]](ctx, c, with(at("webhooks", id, "deliveries"), query))
}

// DeleteWebhook removes a webhook and its pending deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.remove(ctx, at("webhooks", id))
}

// RotateWebhook replaces a webhook's secret.
func (c *Client) RotateWebhook(ctx context.Context, id string) (NewWebhook, error) {
	return post[NewWebhook](ctx, c, at("webhooks", id, "rotate"), nil)
}

// TestWebhook sends a test event to a webhook and waits for the answer.
func (c *Client) TestWebhook(ctx context.Context, id string) (WebhookTest, error) {
	return post[WebhookTest](ctx, c, at("webhooks", id, "test"), nil)
}
