package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"quotad/internal/api/problem"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
)

// playRequest is traffic on one meter of a draft.
type playRequest struct {
	Meter   string      `json:"meter" minLength:"1" maxLength:"200"`
	Traffic trafficBody `json:"traffic"`
}

// trafficBody says when hits come. The patterns are laid out by a window.
type trafficBody struct {
	Pattern string        `json:"pattern" enum:"steady,bursts,edge,own" doc:"When hits come, beside the steady ones:\n- steady: no others.\n- bursts: bursts, each much shorter than a window.\n- edge: a burst on each side of the edge between two windows.\n- own: those of hits, and no others."`
	Window  string        `json:"window" doc:"The length by which the pattern is laid out, a duration such as 1m. Best the window of a limit."`
	Windows int64         `json:"windows,omitempty" default:"4" minimum:"1" maximum:"60" doc:"How many windows the play lasts."`
	Steady  int64         `json:"steady,omitempty" default:"0" minimum:"0" maximum:"10000" doc:"Hits in each window, evenly spread."`
	Burst   int64         `json:"burst,omitempty" default:"0" minimum:"0" maximum:"10000" doc:"Hits of each burst."`
	Cost    int64         `json:"cost,omitempty" default:"1" minimum:"1" maximum:"999999999999999" doc:"Units of each hit."`
	Hits    []trafficHits `json:"hits,omitempty" maxItems:"10000" doc:"The hits of the pattern own."`
}

type trafficHits struct {
	AtUS int64 `json:"at_us" minimum:"0" doc:"Microseconds since the start of the play."`
	Cost int64 `json:"cost" required:"false" minimum:"1" maximum:"999999999999999" default:"1" doc:"Units."`
}

// playsBody is what a play gave: by the draft, and by the plan's newest version.
type playsBody struct {
	Draft   playBody  `json:"draft"`
	InForce *playBody `json:"in_force,omitempty" doc:"The same hits through the newest version of the plan. Left out where there is none."`
}

type playBody struct {
	LengthUS      int64       `json:"length_us" doc:"How long the play lasts, in microseconds."`
	Admitted      playSum     `json:"admitted"`
	Refused       playSum     `json:"refused"`
	LongestWaitMS int64       `json:"longest_wait_ms" doc:"The longest retry_after_ms of a refusal, of those that waiting lifts."`
	Hopeless      int64       `json:"hopeless" doc:"Refusals that no wait lifts."`
	Refusal       *string     `json:"refusal" doc:"What a refusal says: that with the longest wait. Null: nothing was refused."`
	Hits          []playedHit `json:"hits" doc:"What became of each hit, in order."`
	Limits        []playLimit `json:"limits" doc:"The limits of the meter, without those of concurrency, which judge reservations only."`
}

type playSum struct {
	Hits  int64 `json:"hits"`
	Units int64 `json:"units"`
}

type playedHit struct {
	AtUS         int64  `json:"at_us"`
	Cost         int64  `json:"cost"`
	Admitted     bool   `json:"admitted"`
	RetryAfterMS *int64 `json:"retry_after_ms" doc:"Of a refusal: the wait after which the hit would be admitted. Null: never."`
}

type playLimit struct {
	Name      string  `json:"name"`
	Algorithm string  `json:"algorithm"`
	Mode      string  `json:"mode"`
	Limit     int64   `json:"limit"`
	Burst     *int64  `json:"burst,omitempty" doc:"Of a token bucket: its capacity."`
	Window    string  `json:"window" doc:"As in the plan. Empty for an allocation."`
	Refused   int64   `json:"refused" doc:"Hits that the limit did not admit. Those passed all the same if it is soft or a shadow."`
	Level     []int64 `json:"level" doc:"Units that counted against the limit, at 240 instants evenly spread from the start on."`
	Fullest   struct {
		FromUS int64 `json:"from_us"`
		Units  int64 `json:"units"`
	} `json:"fullest" doc:"The window of the limit's length in which the most units were admitted, wherever it begins. 0 units where the limit has no length of its own."`
}

func (s *Server) playDraft(c *call) (answer, error) {
	key, err := nameInPath(c.r, "key")
	if err != nil {
		return answer{}, err
	}
	in := playRequest{Traffic: trafficBody{Windows: 4, Cost: 1}}
	if err = decode(c.body, &in); err != nil {
		return answer{}, err
	}
	traffic, err := in.Traffic.read()
	if err != nil {
		return answer{}, err
	}
	hits, err := traffic.Hits()
	if errors.Is(err, play.ErrTooManyHits) {
		return answer{}, problem.Invalid("traffic", fmt.Sprintf("has more than %d hits: ask for fewer windows, or fewer hits in them", play.MaxHits))
	}
	if err != nil {
		return answer{}, err
	}
	if err = s.takeHeavy(c); err != nil {
		return answer{}, err
	}
	defer s.heavy.giveBack()
	_, draft, bad, _, err := s.draft(c, key)
	if err != nil {
		return answer{}, err
	}
	if bad = concerning(bad, &draft, in.Meter); len(bad) > 0 {
		return answer{}, problem.InvalidFields(bad)
	}
	return s.plays(c.ctx(), key, &draft, in.Meter, hits, traffic.Length())
}

// read is the traffic that is asked for, checked.
func (b *trafficBody) read() (*play.Traffic, error) {
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

// concerning are the faults of a draft that keep a play of the meter from being one: those of its
// limits, and of what their windows hang on.
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

// plays plays hits through the draft and through the newest version.
func (s *Server) plays(ctx context.Context, key string, draft *plans.PlanInput, meter string, hits []play.Hit, length int64) (answer, error) {
	body := playsBody{}
	ours, err := playPlan(ctx, draft, meter, hits, length)
	if err != nil {
		return answer{}, err
	}
	body.Draft = *ours
	latest, err := s.store.GetPlan(ctx, key)
	if err == nil {
		body.InForce, err = playPlan(ctx, &latest.PlanInput, meter, hits, length)
	}
	if err != nil && !errors.Is(err, plans.ErrUnknownPlan) {
		return answer{}, err
	}
	return answer{status: http.StatusOK, body: body}, nil
}

func playPlan(ctx context.Context, p *plans.PlanInput, meter string, hits []play.Hit, length int64) (*playBody, error) {
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

// playCustomer is what the sentence of a refusal calls the customer of a play; no sentence does.
const playCustomer = "play"

func showPlay(r *play.Result, meter string) *playBody {
	body := &playBody{
		LengthUS: r.Length, Admitted: playSum(r.Admitted), Refused: playSum(r.Refused), LongestWaitMS: ceilMS(r.LongestWait), Hopeless: r.Hopeless,
		Hits: make([]playedHit, len(r.Hits)), Limits: make([]playLimit, len(r.Limits)),
	}
	if r.Refusal != nil {
		why := respond.Why(&respond.Subject{Customer: playCustomer, Meter: meter, Cost: r.Refusal.Cost}, r.Refusal)
		body.Refusal = &why
	}
	for i, h := range r.Hits {
		body.Hits[i] = playedHit{AtUS: h.At, Cost: h.Cost, Admitted: h.Admitted}
		if h.Wait != model.Never {
			wait := ceilMS(h.Wait)
			body.Hits[i].RetryAfterMS = &wait
		}
	}
	for i := range r.Limits {
		l, shown := &r.Limits[i], &body.Limits[i]
		*shown = playLimit{
			Name: l.Name, Algorithm: l.Algorithm.String(), Mode: l.Mode.String(), Limit: l.Limit.Limit, Window: l.WindowText, Refused: l.Refused, Level: l.Level,
		}
		if l.Algorithm.Refills() {
			shown.Burst = &l.Burst
		}
		shown.Fullest.FromUS, shown.Fullest.Units = l.Fullest.From, l.Fullest.Units
	}
	return body
}

// ceilMS is µs as milliseconds, rounded up: who waits that long is not early.
func ceilMS(us int64) int64 { return (us + 999) / 1000 }
