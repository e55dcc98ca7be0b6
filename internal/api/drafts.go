package api

import (
	"context"
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

const draftPattern = "/v1/plans/{key}/draft"

func draftRoutes() []route {
	missing := []*problem.Kind{problem.KindNotFound}
	draft := reflect.TypeFor[client.Draft]()
	return []route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: draftPattern, Access: apidoc.AdminOnly, Tag: "Plans", ID: "putDraft", Summary: "Store a draft of a plan",
			Params:  []apidoc.Param{{Name: "rebase", Type: "boolean", Doc: "`true` begins the draft anew on the plan's newest version: `based_on` becomes that."}},
			Request: reflect.TypeFor[client.PlanInput](), Response: draft, Status: put200or201, Problems: preconditions,
		}, handle: (*Server).putDraft},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: draftPattern, Access: apidoc.Readers, Tag: "Plans", ID: "getDraft", Summary: "Get the draft of a plan",
			Response: draft, Status: ok200, Problems: missing,
		}, handle: (*Server).getDraft},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: draftPattern, Access: apidoc.AdminOnly, Tag: "Plans", ID: "deleteDraft", Summary: "Delete the draft of a plan",
			Status: done204, Problems: missing,
		}, handle: (*Server).deleteDraft},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: draftPattern + "/play", Access: apidoc.AdminOnly, Tag: "Plans", ID: "playDraft", Summary: "Play hits through a draft",
			Request: reflect.TypeFor[client.PlayRequest](), Response: reflect.TypeFor[client.Plays](), Status: ok200, Problems: missing,
		}, handle: (*Server).playDraft, reads: true},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: draftPattern + "/compare", Access: apidoc.AdminOnly, Tag: "Plans", ID: "compareDraft", Summary: "Compare a draft with the past 30 days",
			Request: reflect.TypeFor[client.CompareRequest](), Response: reflect.TypeFor[client.Compare](), Status: ok200, Problems: missing,
		}, handle: (*Server).compareDraft, reads: true},
	}
}

func (s *Server) putDraft(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	in, err := decodePlan(c.body)
	if err != nil {
		return answer{}, err
	}
	rebase, err := c.query.flag("rebase")
	if err != nil {
		return answer{}, err
	}
	pre, err := precondition(c.r.Header)
	if err != nil {
		return answer{}, err
	}
	d, created, err := s.store.PutDraft(c.ctx(), key, c.body, rebase, pre)
	if err != nil {
		return answer{}, err
	}
	_, bad, latest, err := s.store.CheckPlan(c.ctx(), key, in)
	return draftAnswer(putStatus(created), d, latest, bad, err)
}

func (s *Server) getDraft(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	d, _, bad, latest, err := s.draft(c, key)
	return draftAnswer(http.StatusOK, d, latest, bad, err)
}

// draft reads a plan's draft, with its defaults filled in if nothing is wrong with it, and what is
// wrong with it.
func (s *Server) draft(c *call, key string) (d *plans.Draft, in plans.PlanInput, bad model.FieldErrors, latest int, err error) {
	if d, err = s.store.GetDraft(c.ctx(), key); err != nil {
		return nil, in, nil, 0, err
	}
	if in, err = decodePlan(d.Document); err != nil {
		return nil, in, nil, 0, err
	}
	whole, bad, latest, err := s.store.CheckPlan(c.ctx(), key, in)
	if len(bad) == 0 {
		in = whole
	}
	return d, in, bad, latest, err
}

func draftAnswer(status int, d *plans.Draft, latest int, bad model.FieldErrors, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	body := client.Draft{Key: d.Key, BasedOn: d.BasedOn, LatestVersion: latest, SavedAt: d.SavedAt, Plan: d.Document, Problems: []client.FieldError{}}
	for _, e := range bad[:min(len(bad), problem.MaxErrors)] {
		body.Problems = append(body.Problems, client.FieldError{Field: plans.Shorten(e.Field), Detail: e.Detail})
	}
	return answer{status: status, etag: d.ETag(), body: body}, nil
}

func (s *Server) deleteDraft(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err == nil {
		err = s.store.DeleteDraft(c.ctx(), key)
	}
	return answer{status: http.StatusNoContent}, err
}

// maxHeavy is how many plays and comparisons a node works on at once. Each takes a processor.
const maxHeavy = 2

var errManyHeavy = &problem.Fault{Kind: problem.KindBusy, Detail: "this node plays or compares 2 drafts already: send it again in a moment"}

// takeHeavy waits for one of the places of plays and comparisons, which s.heavy.giveBack gives
// back. It waits for a fifth of the time that a request has: a comparison needs the rest.
func (s *Server) takeHeavy(c *call) error {
	ctx, cancel := context.WithTimeout(c.ctx(), s.options.Deadline/5)
	defer cancel()
	if s.heavy.take(ctx, c.from) != nil {
		return errManyHeavy
	}
	return nil
}
