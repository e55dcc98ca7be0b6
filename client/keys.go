package client

import (
	"context"
	"net/url"
	"time"
)

// KeyRequest is the body of POST /v1/keys.
type KeyRequest struct {
	Name      string     `json:"name" minLength:"1" maxLength:"200" doc:"A name for people."`
	Scope     string     `json:"scope" enum:"admin,support,backend,read" doc:"What the key may do.\n- admin: everything.\n- support: all that read may, overrides and portal sessions.\n- backend: hits, batches, refunds and reservations, and reading how customers stand.\n- read: every GET of a customer, plan or meter."`
	ExpiresAt *time.Time `json:"expires_at,omitzero" nullable:"true" doc:"The instant at which the key stops working, RFC 3339. If null or absent, the key does not expire."`
}

// Key is an API key without its secret.
type Key struct {
	ID        string     `json:"id" doc:"The key's id, which is not secret. Revoke the key by it."`
	Name      string     `json:"name" doc:"A name for people."`
	Scope     string     `json:"scope" enum:"admin,support,backend,read" doc:"What the key may do.\n- admin: everything.\n- support: all that read may, overrides and portal sessions.\n- backend: hits, batches, refunds and reservations, and reading how customers stand.\n- read: every GET of a customer, plan or meter."`
	CreatedAt time.Time  `json:"created_at" doc:"The instant at which the key was made, RFC 3339 in UTC."`
	ExpiresAt *time.Time `json:"expires_at" doc:"The instant at which the key stops working, RFC 3339 in UTC. Null if the key does not expire."`
	UsedOn    *string    `json:"used_on" format:"date" doc:"The day of the key's last use in UTC. Null if the key was not used yet. The day lags by some seconds."`
}

// NewKey is a new API key with its secret.
type NewKey struct {
	Key
	Secret string `json:"secret" doc:"The key to send. The secret is shown once."`
}

// PortalRequest is the body of POST /v1/portal-sessions.
type PortalRequest struct {
	Customer    string `json:"customer" minLength:"1" maxLength:"200" doc:"The customer whose pages the link opens."`
	Path        string `json:"path,omitempty" maxLength:"200" doc:"The page that the link opens, such as /portal/usage. When left out, /portal."`
	ReturnURL   string `json:"return_url,omitempty" maxLength:"2000" doc:"Where the pages lead back to. Its origin must be one of --portal-return-origins."`
	EmbedOrigin string `json:"embed_origin,omitempty" maxLength:"300" doc:"The site that shows the pages in a frame. It must be one of --portal-origins. When left out, no site may."`
	Theme       string `json:"theme" required:"false" enum:"auto,light,dark" default:"auto" doc:"The colours of the pages. auto follows the browser."`
}

// Portal is a link into a customer's portal.
type Portal struct {
	URL       string    `json:"url" doc:"The link. It opens one session, and the browser that opens it keeps the session for 8 hours."`
	ExpiresAt time.Time `json:"expires_at" doc:"The instant at which the link stops working, RFC 3339 in UTC."`
}

// Keys lists the API keys.
func (c *Client) Keys(ctx context.Context, query url.Values) (List[Key], error) {
	return get[List[Key]](ctx, c, with(at("keys"), query))
}

// RevokeKey revokes an API key.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.remove(ctx, at("keys", id))
}

// OpenPortal creates a link into a customer's portal.
func (c *Client) OpenPortal(ctx context.Context, in *PortalRequest) (Portal, error) {
	return post[Portal](ctx, c, at("portal-sessions"), in)
}
