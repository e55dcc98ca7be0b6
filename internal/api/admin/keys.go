package admin

import (
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
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

func (s *Room) createKey(c *serve.Call, in client.KeyRequest) (client.NewKey, error) {
	key, secret, err := s.Store.CreateKey(c.Ctx(), in.Name, plans.Scope(in.Scope), in.ExpiresAt)
	return client.NewKey{Key: showKey(key), Secret: secret}, err
}

func (s *Room) listKeys(c *serve.Call) (*plans.List[plans.Key], error) {
	return s.Store.ListKeys(c.Ctx(), c.Query.Page())
}

func (s *Room) revokeKey(c *serve.Call) error { return s.Store.RevokeKey(c.Ctx(), c.ID) }

func (s *Room) keyRoutes() []serve.Route {
	return serve.Tagged("Keys",
		serve.Create(apidoc.AdminOnly, "/v1/keys", "keys.create", "Create a key", s.createKey, serve.Same),
		serve.List(apidoc.AdminOnly, "/v1/keys", "keys.list", "List the keys", s.listKeys, showKey),
		serve.Delete(apidoc.AdminOnly, "/v1/keys/{id}", "keys.revoke", "Revoke a key", s.revokeKey).Fails(problem.KindNotFound),
	)
}
