package service

import (
	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
)

func showAudit(e plans.AuditEntry) client.Audit {
	return client.Audit{
		ID: e.ID, At: e.At, Actor: e.Actor, ActorName: respond.OrNull(e.ActorName), Action: e.Action, Target: e.Target,
		Before: e.Before, After: e.After, RequestID: respond.OrNull(e.Request),
	}
}

// maxFilter is the maximum length in bytes of an actor or target in a list's filter.
const maxFilter = 1000

func (s *Room) listAudit(c *serve.Call) (_ *plans.List[plans.AuditEntry], err error) {
	f := plans.AuditFilter{Actor: c.Query["actor"], Target: c.Query["target"]}
	for _, name := range []string{"actor", "target"} {
		if text, given := c.Query[name]; given && (text == "" || len(text) > maxFilter || !plans.PlainText(text)) {
			return nil, problem.Invalid(name, "must be UTF-8 without control characters, 1 to 1000 bytes")
		}
	}
	if f.From, f.To, err = c.Query.Between(); err != nil {
		return nil, err
	}
	return s.Store.AuditEntries(c.Ctx(), f, c.Query.Page())
}

var auditParams = []apidoc.Param{
	{Name: "actor", Type: "string", Doc: "Changes by this actor only: the id of a key, `command-line` or `start`."},
	{
		Name: "target", Type: "string",
		Doc: "Changes of this and of all below it only, such as `customers/acme` or `customers/acme/overrides`. A key alone, such as `acme`, is of whatever has that key.",
	},
	{Name: "from", Type: "date-time", Doc: "Changes then or later."},
	{Name: "to", Type: "date-time", Doc: "Changes before."},
}

func (s *Room) auditRoutes() []serve.Route {
	return serve.Tagged("Audit",
		serve.List(apidoc.AdminOnly, "/v1/audit", "audit.list", "List who changed what", s.listAudit, showAudit).Takes(auditParams...))
}
