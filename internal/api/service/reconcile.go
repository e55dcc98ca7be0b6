package service

import (
	"context"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/serve"
	"quotad/internal/billing/reconcile"
)

// reconcileWait limits a run for which a client waits. A large database needs more time, which `quotad
// reconcile` allows.
const reconcileWait = 2 * time.Minute

func (s *Room) reconcileRoutes() []serve.Route {
	check := serve.Get(apidoc.AdminOnly, "/v1/reconcile", "reconcile.get", "Check that the books agree", s.reconcile, serve.Same).Described(nil, client.Report{})
	check.Wait = reconcileWait
	return serve.Tagged("Billing", check)
}

// reconcile serves GET /v1/reconcile.
func (s *Room) reconcile(c *serve.Call) (*reconcile.Report, error) {
	report, err := s.options.Reconciler.Run(c.Ctx())
	if err == nil {
		s.noteChecked(c.Ctx(), report)
	}
	return report, err
}

// checked is the result of the last check of the books.
type checked struct {
	at          int64 // µs
	disagreeing []string
}

// noteChecked stores the result of a check for the overview.
func (s *Room) noteChecked(ctx context.Context, report *reconcile.Report) {
	now, err := s.Instant(ctx)
	if err != nil {
		return // the result of the next check is stored
	}
	found := &checked{at: now}
	for i := range report.Checks {
		if report.Checks[i].Rows > 0 {
			found.disagreeing = append(found.disagreeing, report.Checks[i].Name)
		}
	}
	s.checked.Store(found)
}

// Checked returns the instant at which this node last checked the books, µs, and the names of the checks with
// findings. at is nil if this node has not checked the books yet.
func (s *Room) Checked() (at *int64, disagreeing []string) {
	found := s.checked.Load()
	if found == nil {
		return nil, nil
	}
	return &found.at, found.disagreeing
}
