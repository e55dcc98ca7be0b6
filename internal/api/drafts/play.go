package drafts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quotad/client"
	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
)

func (s *Room) playDraft(c *serve.Call, in client.PlayRequest) (body client.Plays, err error) {
	traffic, err := readTraffic(&in.Traffic)
	if err != nil {
		return body, err
	}
	hits, err := traffic.Hits()
	if errors.Is(err, play.ErrTooManyHits) {
		return body, problem.Invalid("traffic", fmt.Sprintf("has more than %d hits: ask for fewer windows, or fewer hits in them", play.MaxHits))
	}
	if err != nil {
		return body, err
	}
	if err = s.takeHeavy(c); err != nil {
		return body, err
	}
	defer s.Heavy.GiveBack()
	draft, err := s.getDraft(c)
	if err != nil {
		return body, err
	}
	if bad := concerning(draft.bad, &draft.plan, in.Meter); len(bad) > 0 {
		return body, problem.InvalidFields(bad)
	}
	ours, err := playPlan(c.Ctx(), &draft.plan, in.Meter, hits, traffic.Length())
	if err != nil {
		return body, err
	}
	body.Draft = *ours
	latest, err := s.Store.GetPlan(c.Ctx(), c.Key)
	if errors.Is(err, plans.ErrUnknownPlan) {
		return body, nil
	}
	if err == nil {
		body.InForce, err = playPlan(c.Ctx(), &latest.PlanInput, in.Meter, hits, traffic.Length())
	}
	return body, err
}

// readTraffic returns the checked traffic of the request.
func readTraffic(b *client.Traffic) (*play.Traffic, error) {
	t := &play.Traffic{Pattern: b.Pattern, Windows: b.Windows, Steady: b.Steady, Burst: b.Burst, Cost: b.Cost}
	t.Window, _ = model.ParseDuration(b.Window)
	for _, h := range b.Hits {
		if h.Cost == 0 {
			h.Cost = 1
		}
		t.List = append(t.List, play.Hit{At: h.AtUS, Cost: h.Cost})
	}
	bad := t.Check()
	for i := range bad {
		bad[i].Field = "traffic." + strings.Replace(bad[i].Field, "].at", "].at_us", 1)
	}
	if len(bad) > 0 {
		return nil, problem.InvalidFields(bad)
	}
	return t, nil
}

// concerning returns the faults of a draft that prevent a play of the meter: the faults of the meter's limits
// and of the settings on which their windows depend.
func concerning(all model.FieldErrors, draft *plans.PlanInput, meter string) (bad model.FieldErrors) {
	if !plans.ValidKey(meter) {
		return model.FieldErrors{{Field: "meter", Detail: plans.KeyRule}}
	}
	for _, e := range all {
		if strings.HasPrefix(e.Field, "interval") {
			bad = append(bad, e)
		}
	}
	for i := range draft.Limits {
		path := fmt.Sprintf("limits[%d].", i)
		for _, e := range all {
			if draft.Limits[i].Meter == meter && strings.HasPrefix(e.Field, path) {
				bad = append(bad, e)
			}
		}
	}
	return bad
}

func playPlan(ctx context.Context, p *plans.PlanInput, meter string, hits []play.Hit, length int64) (*client.Play, error) {
	var limits []*model.Limit
	for i := range p.Limits {
		if p.Limits[i].Meter != meter {
			continue
		}
		l, bad := model.Compile(p.Limits[i].Spec)
		if len(bad) > 0 {
			return nil, problem.InvalidFields(bad)
		}
		limits = append(limits, l)
	}
	r, err := play.Play(ctx, limits, play.Periods(p.BillingInterval()), hits, length)
	if err != nil {
		return nil, err
	}
	return showPlay(r, meter), nil
}

// playCustomer is the customer's name in a play. It never appears in the sentence of a refusal.
const playCustomer = "play"

func showPlay(r *play.Result, meter string) *client.Play {
	body := &client.Play{
		LengthUS: r.Length, Admitted: client.PlaySum(r.Admitted), Refused: client.PlaySum(r.Refused), LongestWaitMS: ceilMS(r.LongestWait), Hopeless: r.Hopeless,
		Hits: make([]client.PlayedHit, len(r.Hits)), Limits: make([]client.PlayLimit, len(r.Limits)),
	}
	if r.Refusal != nil {
		why := respond.Why(&respond.Subject{Customer: playCustomer, Meter: meter, Cost: r.Refusal.Cost}, r.Refusal)
		body.Refusal = &why
	}
	for i, h := range r.Hits {
		body.Hits[i] = client.PlayedHit{AtUS: h.At, Cost: h.Cost, Admitted: h.Admitted}
		if h.Wait != model.Never {
			wait := ceilMS(h.Wait)
			body.Hits[i].RetryAfterMS = &wait
		}
	}
	for i := range r.Limits {
		l, shown := &r.Limits[i], &body.Limits[i]
		*shown = client.PlayLimit{
			Name: l.Name, Algorithm: l.Algorithm.String(), Mode: l.Mode.String(), Limit: l.Limit.Limit, Window: l.WindowText, Refused: l.Refused, Level: l.Level,
		}
		if l.Algorithm.Refills() {
			shown.Burst = &l.Burst
		}
		shown.Fullest.FromUS, shown.Fullest.Units = l.Fullest.From, l.Fullest.Units
	}
	return body
}

// ceilMS converts µs to milliseconds and rounds up, so that a client that waits so long is not early.
func ceilMS(us int64) int64 { return (us + 999) / 1000 }
