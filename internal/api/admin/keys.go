package admin

import (
	"net/http"
	"reflect"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showKey(k plans.Key) client.Key {
	body := client.Key{ID: k.ID, Name: k.Name, Scope: string(k.Scope), CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
	if k.UsedOn != nil {
		on := k.UsedOn.Format(time.DateOnly)
		body.UsedOn = &on
	}
	return body
}

func (s *Room) createKey(c *serve.Call) (serve.Answer, error) {
	var in client.KeyRequest
	if err := request.DecodeBy(request.TimeMembers, c.Body, &in); err != nil {
		return serve.Answer{}, err
	}
	key, secret, err := s.Store.CreateKey(c.Ctx(), in.Name, plans.Scope(in.Scope), in.ExpiresAt)
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusCreated, Body: client.NewKey{Key: showKey(key), Secret: secret}}, nil
}

func (s *Room) listKeys(c *serve.Call) (serve.Answer, error) {
	list, err := s.Store.ListKeys(c.Ctx(), c.Query.Page())
	return serve.ListAnswer(list, err, showKey)
}

func (s *Room) revokeKey(c *serve.Call) (serve.Answer, error) {
	id, err := request.NameInPath(c.R, "id")
	if err != nil {
		return serve.Answer{}, err
	}
	return serve.Answer{Status: http.StatusNoContent}, s.Store.RevokeKey(c.Ctx(), id)
}

func (s *Room) keyRoutes() []serve.Route {
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "createKey", Summary: "Create a key",
			Request: reflect.TypeFor[client.KeyRequest](), Response: reflect.TypeFor[client.NewKey](), Status: serve.Created201,
		}, Handle: s.createKey},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: "/v1/keys", Access: apidoc.AdminOnly, Tag: "Keys", ID: "listKeys", Summary: "List the keys",
			Params: request.Paging, Response: reflect.TypeFor[client.List[client.Key]](), Status: serve.OK200,
		}, Handle: s.listKeys},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: "/v1/keys/{id}", Access: apidoc.AdminOnly, Tag: "Keys", ID: "revokeKey", Summary: "Revoke a key",
			Status: serve.Done204, Problems: []*problem.Kind{problem.KindNotFound},
		}, Handle: s.revokeKey},
	}
}
