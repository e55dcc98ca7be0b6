package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"quotad/client"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// This file shows the effects of a draft: a play with chosen traffic, and a comparison with the past 30 days.

type planPlayData struct {
	*planPage
	Fields   map[string]string
	Wrong    map[string]string
	Meters   []parts.Choice
	Patterns []parts.Choice
	Draft    []parts.ShownPlay
	InForce  []parts.ShownPlay
	None     string // reason why there is no play
	Compare  *compareData
	Customer string
	Bad      string // fault of the customer
}

// planPlay shows the page "What it would do".
func (v *visit) planPlay() (*page.View, error) {
	p, err := v.meetPlan("play")
	if err != nil {
		return nil, err
	}
	asked := v.R.URL.Query()
	if asked.Has("hit") {
		return &page.View{To: p.URL + "/play?" + parts.OneMoreHit(asked).Encode()}, nil
	}
	d := &planPlayData{planPage: p, Customer: asked.Get("customer")}
	s, meter := v.planSetup(d, asked)
	shown := &page.View{Sheet: "plan-play", Title: p.Title, Tab: "plans", Data: d}
	switch {
	case !p.Draft:
		d.None = "There is no draft. Change something and save it: then it is played here beside what is in force."
	case !p.May:
		d.None = "Only keys of the scope admin play drafts."
	case meter == "":
		d.None = "The draft has no limit yet."
	case len(d.Wrong) > 0:
		shown.Status, d.None = http.StatusUnprocessableEntity, "Something in the form is not right. It says what."
	default:
		if err := v.playDraft(d, s, meter); err != nil {
			return nil, err
		}
	}
	if p.Draft && p.May && asked.Has("compare") {
		if err := v.compareDraft(d); err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// planSetup reads the traffic in the address, for one of the draft's meters. Missing values are chosen for the
// meter's narrowest limit, so that the limit refuses some hits.
func (v *visit) planSetup(d *planPlayData, asked url.Values) (s *parts.Setup, meter string) {
	fields := d.current.fields()
	n, _ := strconv.Atoi(fields["limits"])
	for i := range n {
		name := fields[pathOf("limits", i, "meter")]
		if name != "" && !slices.ContainsFunc(d.Meters, func(c parts.Choice) bool { return c.Value == name }) {
			d.Meters = append(d.Meters, parts.Choice{Value: name, Text: name, On: name == asked.Get("meter")})
			if meter == "" || name == asked.Get("meter") {
				meter = name
			}
		}
	}
	if !asked.Has("window") {
		layOut(asked, fields, n, meter)
	}
	s = parts.ReadSetup(asked)
	for _, name := range []string{"limit", "capacity", "algorithm"} { // values of the draft, not of the form
		delete(s.Wrong, name)
	}
	d.Fields, d.Wrong, d.Patterns = s.Fields, s.Wrong, s.Patterns()
	return s, meter
}

// layOut fills the form with traffic whose size follows from the smallest hard limit on a meter.
func layOut(asked url.Values, fields map[string]string, limits int, meter string) {
	const many = 2000 // number of hits in a burst
	least := int64(0)
	for i := range limits {
		window, units := fields[pathOf("limits", i, "window")], fields[pathOf("limits", i, "limit")]
		n, err := strconv.ParseInt(units, 10, 64)
		if mode := fields[pathOf("limits", i, "mode")]; mode != "" && mode != "hard" {
			continue
		}
		if _, bad := model.ParseDuration(window); bad != nil || err != nil || n < 1 || least > 0 && n >= least || fields[pathOf("limits", i, "meter")] != meter {
			continue
		}
		least = n
		cost := (n + many - 1) / many
		for name, value := range map[string]int64{"cost": cost, "steady": n / cost / 4, "burst": n / cost * 9 / 10} {
			asked.Set(name, strconv.FormatInt(value, 10))
		}
		asked.Set("window", window)
	}
}

func (v *visit) playDraft(d *planPlayData, s *parts.Setup, meter string) error {
	t := &s.Traffic
	traffic := client.Traffic{Pattern: t.Pattern, Window: s.Fields["window"], Windows: t.Windows, Steady: t.Steady, Burst: t.Burst, Cost: t.Cost}
	for _, h := range t.List {
		traffic.Hits = append(traffic.Hits, client.TrafficHits{AtUS: h.At, Cost: h.Cost})
	}
	answer, err := v.API.PlayDraft(v.Ctx(), d.Key, &client.PlayRequest{Meter: meter, Traffic: traffic})
	if problem, told := page.ProblemOf(err); told && problem.Status == http.StatusUnprocessableEntity {
		d.None = "The draft cannot be played yet: " + d.said(problem)
		return nil
	}
	if err != nil {
		return err
	}
	d.Draft = showPlays("draft", &answer.Draft)
	if answer.InForce != nil {
		d.InForce = showPlays("force", answer.InForce)
	}
	return nil
}

var playModes = map[string]model.Mode{"hard": model.Hard, "soft": model.Soft, "shadow": model.Shadow}

// showPlays shows the API's play as a chart for each limit.
func showPlays(id string, a *client.Play) (all []parts.ShownPlay) {
	r := &play.Result{Admitted: play.Sum(a.Admitted), Refused: play.Sum(a.Refused), LongestWait: a.LongestWaitMS * 1000, Hopeless: a.Hopeless, Length: a.LengthUS}
	for _, h := range a.Hits {
		r.Hits = append(r.Hits, play.Outcome{Hit: play.Hit{At: h.AtUS, Cost: h.Cost}, Admitted: h.Admitted})
	}
	refuses := -1 // the last limit that refuses any hit
	for i := range a.Limits {
		l := &a.Limits[i]
		window, _ := model.ParseDuration(l.Window) // 0 for a calendar window
		limit := &play.Limit{Limit: &model.Limit{
			Name: l.Name, Algorithm: model.AlgorithmNamed(l.Algorithm), Limit: l.Limit, Window: window,
			Mode: playModes[l.Mode],
		}, Level: l.Level, Refused: l.Refused}
		if l.Burst != nil {
			limit.Burst = *l.Burst
		}
		limit.Fullest.From, limit.Fullest.Units = l.Fullest.FromUS, l.Fullest.Units
		p := parts.ShowLimit(fmt.Sprintf("%s-%d", id, i), l.Name, r, limit)
		p.Says = words.AlgorithmName(l.Algorithm) + ", " + words.Number(l.Limit)
		if l.Window != "" {
			p.Says += " in " + windowText(l.Window)
		}
		if limit.Mode == model.Hard {
			refuses = i
		} else {
			p.Chip = l.Mode
		}
		all = append(all, p)
	}
	if a.Refusal != nil && refuses >= 0 {
		all[refuses].Refusal = *a.Refusal
	}
	return all
}
