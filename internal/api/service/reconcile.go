package service

import (
	"context"
	"time"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/serve"
	"quotad/internal/billing/reconcile"
)

// reconcileWait bounds a run that a client waits for. A large database takes longer: `quotad
// reconcile` has that time.
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

// checked is what the last check of the books found.
type checked struct {
	at          int64 // µs
	disagreeing []string
}

// noteChecked keeps what a check found, for the overview.
func (s *Room) noteChecked(ctx context.Context, report *reconcile.Report) {
	now, err := s.Instant(ctx)
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
func (s *Room) Checked() (at *int64, disagreeing []string) {
	found := s.checked.Load()
	if found == nil {
		return nil, nil
	}
	return &found.at, found.disagreeing
}
