package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Audit is one recorded change.
type Audit struct {
	ID        int64           `json:"id" doc:"The id of the entry."`
	At        time.Time       `json:"at" doc:"The instant of the change, RFC 3339 in UTC."`
	Actor     string          `json:"actor" doc:"The id of the key that made the change. Or command-line, or start if quotad made its first key."`
	ActorName *string         `json:"actor_name" doc:"The name of the key. Null without a key."`
	Action    string          `json:"action" enum:"create,change,delete,archive,erase,revoke,finalize,pay,reverse,apply_credits,credit,void,withdraw,begin,end,test,rotate,replay" doc:"What was done, such as create, change and delete."`
	Target    string          `json:"target" doc:"The path of what was changed, below /v1/ and not percent-encoded."`
	Before    json.RawMessage `json:"before" doc:"What was there, or null.\n- Of more than 8 KiB the longest members are left out: they say omitted_bytes.\n- Null, too, when the customer was erased."`
	After     json.RawMessage `json:"after" doc:"What has been there since, or null."`
	RequestID *string         `json:"request_id" doc:"The X-Request-Id of the request. Null for a change outside of HTTP."`
}

// Audit lists changes with their authors, the newest first.
func (c *Client) Audit(ctx context.Context, query url.Values) (List[Audit], error) {
	return get[List[Audit]](ctx, c, with(at("audit"), query))
}
