package api

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/billing/reconcile"
)

// reconcileWait bounds a run that a client waits for. A large database takes longer: `quotad
// reconcile` has that time.
const reconcileWait = 2 * time.Minute

func reconcileRoutes() []route {
	return []route{{Operation: apidoc.Operation{
		Method: "GET", Pattern: "/v1/reconcile", Access: apidoc.AdminOnly, Tag: "Billing", ID: "reconcile", Summary: "Check that the books agree",
		Response: reflect.TypeFor[client.Report](), Status: ok200,
	}, handle: (*Server).reconcile, wait: reconcileWait}}
}

// reconcile serves GET /v1/reconcile.
func (s *Server) reconcile(c *call) (answer, error) {
	report, err := s.options.Reconciler.Run(c.ctx())
	if err != nil {
		return answer{}, err
	}
	s.noteChecked(c.ctx(), report)
	return answer{status: http.StatusOK, body: report}, nil
}

// checked is what the last check of the books found.
type checked struct {
	at          int64 // µs
	disagreeing []string
}

// noteChecked keeps what a check found, for the overview.
func (s *Server) noteChecked(ctx context.Context, report *reconcile.Report) {
	now, err := s.instant(ctx)
	if err != nil {
		return // the next check is noted
	}
	found := &checked{at: now}
	for i := range report.Checks {
		if report.Checks[i].Rows > 0 {
			found.disagreeing = append(found.disagreeing, report.Checks[i].Name)
		}
	}
	s.checked.Store(found)
}

// Checked is when this node last checked the books, µs, and which checks found something; nil: it
// never did.
func (s *Server) Checked() (at *int64, disagreeing []string) {
	found := s.checked.Load()
	if found == nil {
		return nil, nil
	}
	return &found.at, found.disagreeing
}
