package drafts

import (
	"context"
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

const draftPattern = "/v1/plans/{key}/draft"

// Routes are those of the room. A nil Room describes them.
func (s *Room) Routes() []serve.Route {
	missing := []*problem.Kind{problem.KindNotFound}
	draft := reflect.TypeFor[client.Draft]()
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: draftPattern, Access: apidoc.AdminOnly, Tag: "Plans", ID: "putDraft", Summary: "Store a draft of a plan",
			Params:  []apidoc.Param{{Name: "rebase", Type: "boolean", Doc: "`true` begins the draft again on the plan's newest version: `based_on` becomes that."}},
			Request: reflect.TypeFor[client.PlanInput](), Response: draft, Status: serve.Put200or201, Problems: serve.Preconditions,
		}, Handle: s.putDraft},
		{Operation: apidoc.Operation{
			Method: "GET", Pattern: draftPattern, Access: apidoc.Readers, Tag: "Plans", ID: "getDraft", Summary: "Get the draft of a plan",
			Response: draft, Status: serve.OK200, Problems: missing,
		}, Handle: s.getDraft},
		{Operation: apidoc.Operation{
			Method: "DELETE", Pattern: draftPattern, Access: apidoc.AdminOnly, Tag: "Plans", ID: "deleteDraft", Summary: "Delete the draft of a plan",
			Status: serve.Done204, Problems: missing,
		}, Handle: s.deleteDraft},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: draftPattern + "/play", Access: apidoc.AdminOnly, Tag: "Plans", ID: "playDraft", Summary: "Play hits through a draft",
			Request: reflect.TypeFor[client.PlayRequest](), Response: reflect.TypeFor[client.Plays](), Status: serve.OK200, Problems: missing,
		}, Handle: s.playDraft, Reads: true},
		{Operation: apidoc.Operation{
			Method: "POST", Pattern: draftPattern + "/compare", Access: apidoc.AdminOnly, Tag: "Plans", ID: "compareDraft",
			Summary: "Compare a draft with the past 30 days",
			Request: reflect.TypeFor[client.CompareRequest](), Response: reflect.TypeFor[client.Compare](), Status: serve.OK200, Problems: missing,
		}, Handle: s.compareDraft, Reads: true},
	}
}

func (s *Room) putDraft(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	in, err := request.DecodePlan(c.Body)
	if err != nil {
		return serve.Answer{}, err
	}
	rebase, err := c.Query.Flag("rebase")
	if err != nil {
		return serve.Answer{}, err
	}
	pre, err := request.Precondition(c.R.Header)
	if err != nil {
		return serve.Answer{}, err
	}
	d, created, err := s.Store.PutDraft(c.Ctx(), key, c.Body, rebase, pre)
	if err != nil {
		return serve.Answer{}, err
	}
	_, bad, latest, err := s.Store.CheckPlan(c.Ctx(), key, in)
	return draftAnswer(serve.PutStatus(created), d, latest, bad, err)
}

func (s *Room) getDraft(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err != nil {
		return serve.Answer{}, err
	}
	d, _, bad, latest, err := s.draft(c, key)
	return draftAnswer(http.StatusOK, d, latest, bad, err)
}

// draft reads a plan's draft, with its defaults filled in if nothing is wrong with it, and what is
// wrong with it.
func (s *Room) draft(c *serve.Call, key string) (d *plans.Draft, in plans.PlanInput, bad model.FieldErrors, latest int, err error) {
	if d, err = s.Store.GetDraft(c.Ctx(), key); err != nil {
		return nil, in, nil, 0, err
	}
	if in, err = request.DecodePlan(d.Document); err != nil {
		return nil, in, nil, 0, err
	}
	whole, bad, latest, err := s.Store.CheckPlan(c.Ctx(), key, in)
	if len(bad) == 0 {
		in = whole
	}
	return d, in, bad, latest, err
}

func draftAnswer(status int, d *plans.Draft, latest int, bad model.FieldErrors, err error) (serve.Answer, error) {
	if err != nil {
		return serve.Answer{}, err
	}
	body := client.Draft{Key: d.Key, BasedOn: d.BasedOn, LatestVersion: latest, SavedAt: d.SavedAt, Plan: d.Document, Problems: []client.FieldError{}}
	for _, e := range bad[:min(len(bad), problem.MaxErrors)] {
		body.Problems = append(body.Problems, client.FieldError{Field: plans.Shorten(e.Field), Detail: e.Detail})
	}
	return serve.Answer{Status: status, ETag: d.ETag(), Body: body}, nil
}

func (s *Room) deleteDraft(c *serve.Call) (serve.Answer, error) {
	key, err := request.NameInPath(c.R, "key")
	if err == nil {
		err = s.Store.DeleteDraft(c.Ctx(), key)
	}
	return serve.Answer{Status: http.StatusNoContent}, err
}

// MaxHeavy is how many plays and comparisons a node works on at once. Each takes a processor.
const MaxHeavy = 2

var errManyHeavy = &problem.Fault{Kind: problem.KindBusy, Detail: "this node plays or compares 2 drafts already: send it again in a moment"}

// takeHeavy waits for one of the places of plays and comparisons, which s.Heavy.GiveBack gives
// back. It waits for a fifth of the time that a request has: a comparison needs the rest.
func (s *Room) takeHeavy(c *serve.Call) error {
	ctx, cancel := context.WithTimeout(c.Ctx(), s.Deadline/5)
	defer cancel()
	if s.Heavy.Take(ctx, c.From) != nil {
		return errManyHeavy
	}
	return nil
}
