// Package webhooks is the routes of webhooks: made, listed, deleted, tested, and what was sent to them.
//
// It reads requests and asks internal/webhooks. It must never send anything itself.
package webhooks

import (
	"net/http"
	"reflect"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/calendar"
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

func (s *Room) create(c *serve.Call) (serve.Answer, error) {
	var in client.WebhookRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	w, secret, err := s.Webhooks.Create(c.Ctx(), in.URL, in.Types)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusCreated, Body: client.NewWebhook{Webhook: show(w), Secret: secret}}, nil
}

func (s *Room) list(c *serve.Call) (serve.Answer, error) {
	list, err := s.Webhooks.List(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(list, err, show)
}

func (s *Room) remove(c *serve.Call) (serve.Answer, error) {
	id, err := request.NameInPath(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusNoContent}, s.Webhooks.Delete(c.Ctx(), id)
}

func (s *Room) rotate(c *serve.Call) (serve.Answer, error) {
	id, err := request.NameInPath(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	w, secret, err := s.Webhooks.Rotate(c.Ctx(), id)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: client.NewWebhook{Webhook: show(w), Secret: secret}}, nil
}

func (s *Room) test(c *serve.Call) (serve.Answer, error) {
	id, err := request.NameInPath(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	is, err := s.Sender.Test(c.Ctx(), id)
	if err != nil {
		return serve.Answer{}, err
	}
	body := client.WebhookTest{Delivered: is.Failed == "", Error: respond.OrNull(is.Failed), Enabled: is.Enabled}
	if is.Status > 0 {
		body.Status = &is.Status
	}
	return serve.Answer{Status: http.StatusOK, Body: body}, nil
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

func (s *Room) deliveries(c *serve.Call) (serve.Answer, error) {
	id, err := request.NameInPath(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	list, err := s.Webhooks.Deliveries(c.Ctx(), id, c.Query.Page())
	return serve.ListAnswer(list, err, showDelivery)
}

func (s *Room) replay(c *serve.Call) (serve.Answer, error) {
	id, err := request.NameInPath(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	var in client.ReplayRequest
	if err := request.Decode(c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	const rule = "must be an RFC 3339 time such as 2026-01-31T12:00:00Z"
	from, err := calendar.ParseInstant(in.From)
	if err != nil {
		return serve.Answer{}, problem.Invalid("from", rule)
	}
	var to int64
	if in.To != nil {
		if to, err = calendar.ParseInstant(*in.To); err != nil {
			return serve.Answer{}, problem.Invalid("to", rule)
		}
	} else if to, err = s.Now(c.Ctx()); err != nil {
		return serve.Answer{}, err
	} else {
		to += time.Second.Microseconds() // what is shown just now, by a clock that is a little ahead
	}
	switch {
	case to <= from && in.To == nil:
		return serve.Answer{}, problem.Invalid("from", "must be in the past: there is nothing to send again")
	case to <= from:
		return serve.Answer{}, problem.Invalid("to", "must be after from")
	}
	again, err := s.Webhooks.Replay(c.Ctx(), id, from, to)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusOK, Body: client.Replayed{Deliveries: again}}, nil
}

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	const one = "/v1/webhooks/{id}"
	gone, conflict := []*problem.Kind{problem.KindNotFound}, []*problem.Kind{problem.KindConflict}
	made := reflect.TypeFor[client.NewWebhook]()
	operation := func(method, pattern, id, summary string) apidoc.Operation {
		return apidoc.Operation{
			Method: method, Pattern: pattern, Access: apidoc.AdminOnly, Tag: "Events", ID: id, Summary: summary, Status: serve.OK200,
			Problems: gone,
		}
	}
	create, list := operation("POST", "/v1/webhooks", "createWebhook", "Create a webhook"), operation("GET", "/v1/webhooks", "listWebhooks", "List the webhooks")
	create.Request, create.Response, create.Status, create.Problems = reflect.TypeFor[client.WebhookRequest](), made, serve.Created201, conflict
	list.Params, list.Response, list.Problems = request.Paging, reflect.TypeFor[client.List[client.Webhook]](), nil
	remove := operation("DELETE", one, "deleteWebhook", "Delete a webhook")
	rotate := operation("POST", one+"/rotate", "rotateWebhook", "Give a webhook another secret")
	remove.Status, rotate.Response = serve.Done204, made
	test := operation("POST", one+"/test", "testWebhook", "Send a test to a webhook")
	sent := operation("GET", one+"/deliveries", "listDeliveries", "List what was sent to a webhook")
	test.Response = reflect.TypeFor[client.WebhookTest]()
	sent.Params, sent.Response = request.Paging, reflect.TypeFor[client.List[client.Delivery]]()
	replay := operation("POST", one+"/replay", "replayWebhook", "Send events to a webhook again")
	replay.Request, replay.Response, replay.Problems = reflect.TypeFor[client.ReplayRequest](), reflect.TypeFor[client.Replayed](), append(conflict, gone...)
	return []serve.Route{
		{Operation: create, Handle: s.create},
		{Operation: list, Handle: s.list},
		{Operation: remove, Handle: s.remove},
		{Operation: rotate, Handle: s.rotate},
		{Operation: test, Handle: s.test},
		{Operation: sent, Handle: s.deliveries},
		{Operation: replay, Handle: s.replay},
	}
}
