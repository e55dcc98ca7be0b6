package api

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
	"quotad/internal/quota/queue"
)

// requestIDHeader names a request, for logs and the audit trail.
const requestIDHeader = "X-Request-Id"

// maxRequestID is the length of the longest id of a request that is taken over, bytes.
const maxRequestID = 200

// audited reports whether what the route does is audited: all that admins and support write.
func (rt *route) audited() bool {
	return rt.Method != http.MethodGet && !rt.reads && (rt.Access == apidoc.AdminOnly || rt.Access == apidoc.Supporters)
}

// actor is who sends a request that changes something. The answer says the request's id: the
// client's own, or one that is made here.
func actor(w http.ResponseWriter, r *http.Request, from queue.SenderID) plans.Actor {
	id := r.Header.Get(requestIDHeader)
	if !validRequestID(id) {
		var raw [12]byte
		_, _ = rand.Read(raw[:]) // never fails; the program would have been ended
		id = "req_" + base64.RawURLEncoding.EncodeToString(raw[:])
	}
	w.Header().Set(requestIDHeader, id)
	return plans.Actor{By: string(from), Request: id}
}

func validRequestID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= maxRequestID
}

// auditImports is the target of imports in the audit trail.
const auditImports = "imports"

// auditBegin records that an import begins, before its first line is done.
func (im *importing) auditBegin(ctx context.Context) error {
	if im.audited {
		return nil
	}
	err := im.server.store.Record(ctx, plans.Audited{Action: "begin", Target: auditImports})
	im.audited = err == nil
	return err
}

type importAudit struct {
	Lines    int64 `json:"lines"`
	Imported int64 `json:"imported"`
	Replayed int64 `json:"replayed"`
	Failed   int64 `json:"failed"`
}

// auditEnd records what came of an import that did anything.
func (im *importing) auditEnd() {
	if !im.audited {
		return
	}
	sum := &im.outcomes
	ended := plans.Audited{Action: "end", Target: auditImports, After: importAudit{sum.Lines, sum.Imported, sum.Replayed, sum.Failed}}
	if err := im.server.store.Record(context.WithoutCancel(im.r.Context()), ended); err != nil {
		im.server.log.Warn("the end of an import could not be audited", "error", err)
	}
}

type adjustmentAudit struct {
	Meter  string `json:"meter"`
	Cost   int64  `json:"cost"`
	At     string `json:"at,omitempty"` // as it was asked for
	Reason string `json:"reason"`
}

// auditedAdjustment is the entry of an adjustment, which the engine writes with it.
func auditedAdjustment(ctx context.Context, customer, id string, in *adjustmentRequest) (*locked.Audit, error) {
	by, acts := plans.ActorOf(ctx)
	if !acts {
		return nil, nil //nolint:nilnil // quotad itself is not audited
	}
	change := plans.Audited{
		Action: plans.AuditCreate, Target: "customers/" + customer + "/adjustments/" + id,
		After: adjustmentAudit{in.Meter, in.Cost, in.At, in.Reason},
	}
	_, after, err := change.Documents()
	return &locked.Audit{
		Actor: by.By, Request: by.Request, Action: change.Action, Subject: plans.Subject(change.Target), Target: change.Target, After: after,
	}, err
}

func showAudit(e plans.AuditEntry) client.Audit {
	return client.Audit{
		ID: e.ID, At: e.At, Actor: e.Actor, ActorName: orNull(e.ActorName), Action: e.Action, Target: e.Target,
		Before: e.Before, After: e.After, RequestID: orNull(e.Request),
	}
}

// maxFilter is the length of the longest actor or target that a list is asked for, bytes.
const maxFilter = 1000

func (s *Server) listAudit(c *call) (answer, error) {
	f := plans.AuditFilter{Actor: c.query["actor"], Target: c.query["target"]}
	for _, name := range []string{"actor", "target"} {
		if text, given := c.query[name]; given && (text == "" || len(text) > maxFilter || !plans.PlainText(text)) {
			return answer{}, problem.Invalid(name, "must be UTF-8 without control characters, 1 to 1000 bytes")
		}
	}
	var err error
	if f.From, f.To, err = c.query.between(); err != nil {
		return answer{}, err
	}
	list, err := s.store.AuditEntries(c.ctx(), f, c.query.page())
	return listAnswer(list, err, showAudit)
}

var auditParams = append([]apidoc.Param{
	{Name: "actor", Type: "string", Doc: "Changes by this actor only: the id of a key, `command-line` or `start`."},
	{Name: "target", Type: "string", Doc: "Changes of this and of all below it only, such as `customers/acme` or `customers/acme/overrides`. A key alone, such as `acme`, is of whatever has that key."},
	{Name: "from", Type: "date-time", Doc: "Changes then or later."},
	{Name: "to", Type: "date-time", Doc: "Changes before."},
}, paging...)

func auditRoutes() []route {
	return []route{{Operation: apidoc.Operation{
		Method: "GET", Pattern: "/v1/audit", Access: apidoc.AdminOnly, Tag: "Audit", ID: "listAudit", Summary: "List who changed what",
		Params: auditParams, Response: reflect.TypeFor[client.List[client.Audit]](), Status: ok200,
	}, handle: (*Server).listAudit}}
}
