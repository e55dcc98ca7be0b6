// Package webhooks serves the routes that create, list, delete and test webhooks, and that list sent requests.
//
// It reads requests and calls internal/webhooks. It must never send anything itself.
package webhooks

import (
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
	"quotad/internal/plans"
	"quotad/internal/webhooks"
)

// Room serves the routes of webhooks.
type Room struct {
	*serve.Server
	Webhooks *webhooks.Webhooks
	Sender   *webhooks.Sender
}

func show(w webhooks.Webhook) client.Webhook {
	return client.Webhook{
		ID: w.ID, URL: w.URL, Types: w.Types, CreatedAt: w.CreatedAt, OldUntil: w.OldUntil,
		FailingSince: w.FailingSince, DisabledAt: w.DisabledAt, DisabledFor: w.DisabledFor,
	}
}

func showNew(w webhooks.Webhook, secret string) client.NewWebhook {
	return client.NewWebhook{Webhook: show(w), Secret: secret}
}

func (s *Room) create(c *serve.Call, in client.WebhookRequest) (client.NewWebhook, error) {
	w, secret, err := s.Webhooks.Create(c.Ctx(), in.URL, in.Types)
	return showNew(w, secret), err
}

func (s *Room) list(c *serve.Call) (*plans.List[webhooks.Webhook], error) {
	return s.Webhooks.List(c.Ctx(), c.Query.Page())
}

func (s *Room) remove(c *serve.Call) error { return s.Webhooks.Delete(c.Ctx(), c.ID) }

func (s *Room) rotate(c *serve.Call) (client.NewWebhook, error) {
	w, secret, err := s.Webhooks.Rotate(c.Ctx(), c.ID)
	return showNew(w, secret), err
}

func (s *Room) test(c *serve.Call) (client.WebhookTest, error) {
	is, err := s.Sender.Test(c.Ctx(), c.ID)
	body := client.WebhookTest{Delivered: is.Failed == "", Error: respond.OrNull(is.Failed), Enabled: is.Enabled}
	if is.Status > 0 {
		body.Status = &is.Status
	}
	return body, err
}

func showDelivery(d webhooks.Delivery) client.Delivery {
	body := client.Delivery{
		Event: d.Event, Type: d.Type, State: d.State, Attempts: d.Attempts, LastAt: d.LastAt, Status: d.Status, Error: d.Error,
	}
	if d.State == webhooks.Waiting {
		body.DueAt = &d.DueAt
	}
	return body
}

func (s *Room) deliveries(c *serve.Call) (*plans.List[webhooks.Delivery], error) {
	return s.Webhooks.Deliveries(c.Ctx(), c.ID, c.Query.Page())
}

func (s *Room) replay(c *serve.Call, in client.ReplayRequest) (is client.Replayed, err error) {
	const rule = "must be an RFC 3339 time such as 2026-01-31T12:00:00Z"
	from, err := calendar.ParseInstant(in.From)
	if err != nil {
		return is, problem.Invalid("from", rule)
	}
	var to int64
	if in.To != nil {
		if to, err = calendar.ParseInstant(*in.To); err != nil {
			return is, problem.Invalid("to", rule)
		}
	} else if to, err = s.Now(c.Ctx()); err != nil {
		return is, err
	} else {
		to += time.Second.Microseconds() // includes events of the last moment even if another clock is a little ahead
	}
	switch {
	case to <= from && in.To == nil:
		return is, problem.Invalid("from", "must be in the past: there is nothing to send again")
	case to <= from:
		return is, problem.Invalid("to", "must be after from")
	}
	is.Deliveries, err = s.Webhooks.Replay(c.Ctx(), c.ID, from, to)
	return is, err
}

// Routes returns the routes of the room. A nil Room only describes the routes.
func (s *Room) Routes() []serve.Route {
	const all, one = "/v1/webhooks", "/v1/webhooks/{id}"
	admins, missing, conflict := apidoc.AdminOnly, problem.KindNotFound, problem.KindConflict
	return serve.Tagged("Events",
		serve.Create(admins, all, "webhooks.create", "Create a webhook", s.create, serve.Same).Fails(conflict),
		serve.List(admins, all, "webhooks.list", "List the webhooks", s.list, show),
		serve.Delete(admins, one, "webhooks.delete", "Delete a webhook", s.remove).Fails(missing),
		serve.Trigger(admins, one+"/rotate", "webhooks.rotateSecret", "Give a webhook another secret", s.rotate, serve.Same).Fails(missing),
		serve.Trigger(admins, one+"/test", "webhooks.test", "Send a test to a webhook", s.test, serve.Same).Fails(missing),
		serve.List(admins, one+"/deliveries", "webhooks.listDeliveries", "List what was sent to a webhook", s.deliveries, showDelivery).Fails(missing),
		serve.Act(admins, one+"/replay", "webhooks.replay", "Send events to a webhook again", s.replay, serve.Same).Fails(conflict, missing),
	)
}
