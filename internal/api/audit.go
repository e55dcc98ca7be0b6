package api

import (
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

// stored is a stored JSON object, or null.
type stored []byte

// MarshalJSONTo implements jsonv2's MarshalerTo.
func (s stored) MarshalJSONTo(e *jsontext.Encoder) error {
	if s == nil {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteValue(jsontext.Value(s))
}

// Schema implements huma.SchemaProvider.
func (stored) Schema(huma.Registry) *huma.Schema {
	anything := &huma.Schema{AnyOf: []*huma.Schema{
		{Type: huma.TypeString, Nullable: true},
		{Type: huma.TypeNumber},
		{Type: huma.TypeBoolean},
		{Type: huma.TypeArray, Items: &huma.Schema{}},
		{Type: huma.TypeObject, AdditionalProperties: true},
	}}
	return &huma.Schema{Type: huma.TypeObject, Nullable: true, AdditionalProperties: anything}
}

type auditBody struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor" doc:"The id of the key. Or command-line, or start where quotad made its first key."`
	ActorName *string   `json:"actor_name" doc:"The name of the key, or null."`
	Action    string    `json:"action" doc:"What was done, such as create, change and delete."`
	Target    string    `json:"target" doc:"The path of what was changed, below /v1/ and not percent-encoded."`
	Before    stored    `json:"before" doc:"What was there, or null.\n- Of more than 8 KiB the longest members are left out: they say omitted_bytes.\n- Null, too, when the customer was erased."`
	After     stored    `json:"after" doc:"What has been there since, or null."`
	RequestID *string   `json:"request_id" doc:"The request's X-Request-Id. Null outside of HTTP."`
}

func showAudit(e plans.AuditEntry) auditBody {
	return auditBody{e.ID, e.At, e.Actor, respond.OrNull(e.ActorName), e.Action, e.Target, e.Before, e.After, respond.OrNull(e.Request)}
}

// maxFilter is the length of the longest actor or target that a list is asked for, bytes.
const maxFilter = 1000

func (s *Server) listAudit(c *serve.Call) (serve.Answer, error) {
	f := plans.AuditFilter{Actor: c.Query["actor"], Target: c.Query["target"]}
	for _, name := range []string{"actor", "target"} {
		if text, given := c.Query[name]; given && (text == "" || len(text) > maxFilter || !plans.PlainText(text)) {
			return serve.Answer{}, problem.Invalid(name, "must be UTF-8 without control characters, 1 to 1000 bytes")
		}
	}
	var err error
	if f.From, f.To, err = c.Query.Between(); err != nil {
		return serve.Answer{}, err
	}
	list, err := s.Store.AuditEntries(c.Ctx(), f, c.Query.Page())
	return serve.ListAnswer(list, err, showAudit)
}

var auditParams = append([]apidoc.Param{
	{Name: "actor", Type: "string", Doc: "Changes by this actor only: the id of a key, `command-line` or `start`."},
	{Name: "target", Type: "string", Doc: "Changes of this and of all below it only, such as `customers/acme` or `customers/acme/overrides`. A key alone, such as `acme`, is of whatever has that key."},
	{Name: "from", Type: "date-time", Doc: "Changes then or later."},
	{Name: "to", Type: "date-time", Doc: "Changes before."},
}, request.Paging...)

func (s *Server) auditRoutes() []serve.Route {
	return []serve.Route{{Operation: apidoc.Operation{
		Method: "GET", Pattern: "/v1/audit", Access: apidoc.AdminOnly, Tag: "Audit", ID: "listAudit", Summary: "List who changed what",
		Params: auditParams, Response: reflect.TypeFor[client.List[auditBody]](), Status: serve.OK200,
	}, Handle: s.listAudit}}
}
