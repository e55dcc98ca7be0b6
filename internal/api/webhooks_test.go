package api

import (
	"strings"
	"testing"
)

// What is wrong with a request about a webhook is told by the field that was sent.
func TestWebhooksRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id, _ := n.want(201, "POST", "/v1/webhooks", `{"url":"https://example.com/x"}`).json["id"].(string)
	for _, c := range []struct{ path, body, want string }{
		{"", `{"url":"https://example.com:0/"}`, "url: must have a port from 1 to 65535, or none"},
		{"", `{"url":"https://example.com/","types":[""]}`, `types: has "", which is no type of events`},
		{"/" + id + "/replay", `{"from":"2999-01-01T00:00:00Z"}`, "from: must be in the past"},
		{"/" + id + "/replay", `{"from":"2999-01-01T00:00:00Z","to":"2998-01-01T00:00:00Z"}`, "to: must be after from"},
		{"/" + id + "/rotate", `{"secret":"whsec_x"}`, "takes no body"},
	} {
		if got, _ := n.want(422, "POST", "/v1/webhooks"+c.path, c.body).json["detail"].(string); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, got, c.want)
		}
	}
}
