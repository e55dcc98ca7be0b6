package hits

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans/catalog"
	"quotad/internal/quota"
	"quotad/internal/quota/model"
)

const levelsPattern = "/v1/customers/{key}/levels/{meter}"

// putLevel serves PUT /v1/customers/{key}/levels/{meter}.
func (s *Room) putLevel(w http.ResponseWriter, r *http.Request, p serve.Params) int {
	buf := respond.BufferFor(p.From)
	defer respond.PutBuffer(buf)
	denied, err := denyStatusOf(p.Query)
	var h hit
	var level int64
	if err == nil {
		h, level, err = s.readLevel(r, buf)
	}
	if err != nil {
		return s.Fail(w, r, err)
	}
	ctx, cancel := s.ChargeInTime(r)
	defer cancel()
	d, err := s.setLevel(ctx, s.Engine.From(p.From), &h, level)
	if err != nil {
		return s.hitFailed(w, r, serve.Explain(serve.OutOfTime(ctx, err), h.names()))
	}
	h.Cost = d.Cost
	return s.answerHit(w, &h, &d, denied, buf)
}

// readLevel reads and checks a request. The members that a level shares with a hit follow the hit's rules.
func (s *Room) readLevel(r *http.Request, buf *respond.Buffer) (h hit, level int64, err error) {
	as := client.HitRequest{}
	if as.Customer, err = request.CustomerInPath(r); err == nil {
		as.Meter, err = request.NameInPath(r, "meter")
	}
	if err == nil {
		err = request.ReadBody(r, buf, s.Memory, request.MaxBody)
	}
	var in client.LevelRequest
	if err == nil {
		err = request.Decode(buf.B, &in)
	}
	if err != nil {
		return h, 0, err
	}
	as.Attributes = in.Attributes
	bad := request.CheckHit(&as, 0)
	if in.Level == nil || *in.Level < 0 || *in.Level > model.MaxNumber {
		bad = append(bad, model.FieldError{Field: "level", Detail: fmt.Sprintf("is required: what is held from now on, between 0 and %d", model.MaxNumber)})
	}
	if len(bad) > 0 {
		return h, 0, problem.InvalidFields(bad)
	}
	return askedOf(&as, request.OpHit), *in.Level, nil
}

// setLevel lets the engine set a customer's level. It creates no customer. If the plan does not have the meter,
// the level can only fall.
func (s *Room) setLevel(ctx context.Context, from quota.Sender, h *hit, level int64) (d model.Decision, err error) {
	err = catalog.WhileStale(func(atLeast int64) error {
		t, err := s.Catalog.ResolveKnown(ctx, h.Customer, h.Meter, atLeast)
		if err == nil {
			if attribute := t.Per(); attribute != "" && !hasAttribute(h, attribute) {
				return problem.Invalid("attributes", fmt.Sprintf("must have %s: a limit of the meter is per it, and the level of one value is set", attribute))
			}
			d, err = from.SetLevel(ctx, t.For(h.attributes), level)
		}
		return err
	})
	return d, err
}

func hasAttribute(h *hit, name string) bool {
	_, there := h.attributes[name]
	return there
}

// LevelRoutes returns the routes of levels. A nil Room only describes the routes.
func (s *Room) LevelRoutes() []serve.Route {
	return []serve.Route{
		{Operation: apidoc.Operation{
			Method: "PUT", Pattern: levelsPattern, Access: apidoc.Backends, Tag: "Backends", ID: "levels.put", Summary: "Set what a customer holds",
			Params:  []apidoc.Param{denyStatusParam},
			Request: reflect.TypeFor[client.LevelRequest](), Response: reflect.TypeFor[client.Decision](), Refusable: true, Status: serve.OK200,
			Problems: []*problem.Kind{problem.KindNotFound, problem.KindNotInPlan},
		}, Raw: s.putLevel},
	}
}
