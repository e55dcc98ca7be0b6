package drafts

import (
	"context"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Routes returns the routes of the room. A nil Room only describes the routes.
func (s *Room) Routes() []serve.Route {
	const one = "/v1/plans/{key}/draft"
	admins, missing := apidoc.AdminOnly, problem.KindNotFound
	hits := client.PlayRequest{Traffic: client.Traffic{Windows: 4, Cost: 1}}
	return serve.Tagged("Plans",
		serve.Put(admins, one, "drafts.put", "Store a draft of a plan", s.putDraft, showDraft).Fails(serve.Preconditions...).Takes(
			apidoc.Param{Name: "rebase", Type: "boolean", Doc: "`true` begins the draft again on the plan's newest version: `based_on` becomes that."},
		),
		serve.Get(apidoc.Readers, one, "drafts.get", "Get the draft of a plan", s.getDraft, showDraft).Fails(missing),
		serve.Delete(admins, one, "drafts.delete", "Delete the draft of a plan", s.deleteDraft).Fails(missing),
		serve.Act(admins, one+"/play", "drafts.play", "Play hits through a draft", s.playDraft, serve.Same).Defaults(hits).Fails(missing).Reading(),
		serve.Act(admins, one+"/compare", "drafts.compare", "Compare a draft with the past 30 days", s.compareDraft, serve.Same).Fails(missing).Reading(),
	)
}

// checked is a draft with its faults.
type checked struct {
	*plans.Draft
	plan   plans.PlanInput // with its defaults if it has no faults
	bad    model.FieldErrors
	latest int // the plan's newest version
}

func (s *Room) putDraft(c *serve.Call, in client.PlanInput) (is checked, isNew bool, err error) {
	if is.Draft, isNew, err = s.Store.PutDraft(c.Ctx(), c.Key, c.Body, c.Flag("rebase"), c.If); err == nil {
		_, is.bad, is.latest, err = s.Store.CheckPlan(c.Ctx(), c.Key, plans.PlanInput(in))
	}
	return is, isNew, err
}

func (s *Room) getDraft(c *serve.Call) (is checked, err error) {
	if is.Draft, err = s.Store.GetDraft(c.Ctx(), c.Key); err != nil {
		return is, err
	}
	if is.plan, err = request.DecodePlan(is.Document); err != nil {
		return is, err
	}
	whole, bad, latest, err := s.Store.CheckPlan(c.Ctx(), c.Key, is.plan)
	if len(bad) == 0 {
		is.plan = whole
	}
	is.bad, is.latest = bad, latest
	return is, err
}

func showDraft(d checked) client.Draft {
	body := client.Draft{Key: d.Key, BasedOn: d.BasedOn, LatestVersion: d.latest, SavedAt: d.SavedAt, Plan: d.Document, Problems: []client.FieldError{}}
	for _, e := range d.bad[:min(len(d.bad), problem.MaxErrors)] {
		body.Problems = append(body.Problems, client.FieldError{Field: plans.Shorten(e.Field), Detail: e.Detail})
	}
	return body
}

func (s *Room) deleteDraft(c *serve.Call) error { return s.Store.DeleteDraft(c.Ctx(), c.Key) }

// MaxHeavy is the maximum number of plays and comparisons that a node runs at once. Each of them occupies a
// processor.
const MaxHeavy = 2

var errManyHeavy = &problem.Fault{Kind: problem.KindBusy, Detail: "this node plays or compares 2 drafts already: send it again in a moment"}

// takeHeavy waits for one of the places of plays and comparisons, which s.Heavy.GiveBack returns. It waits for
// at most a fifth of the request's time, because a comparison needs the rest.
func (s *Room) takeHeavy(c *serve.Call) error {
	ctx, cancel := context.WithTimeout(c.Ctx(), s.Deadline/5)
	defer cancel()
	if s.Heavy.Take(ctx, c.From) != nil {
		return errManyHeavy
	}
	return nil
}
