package web

import (
	"net/http"
	"net/url"
	"time"

	"quotad/client"
)

type refusalsData struct {
	Rows   []refusalRow
	Next   string
	Meters []choice
	Wrong  string
}

type refusalRow struct{ When, Then, Limit, Name, Units string }

func (v *visit) refusalsPage() (*view, error) {
	asked := v.r.URL.Query()
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"meter", "cursor"} {
		if asked.Get(name) != "" {
			q.Set(name, asked.Get(name))
		}
	}
	shown := &view{sheet: "refusals", title: "Refusals", tab: "refusals"}
	data, err := v.refusals(q)
	if problem, told := problemOf(err); told && len(asked) > 0 && (problem.Status == http.StatusUnprocessableEntity || problem.Status == http.StatusNotFound) {
		shown.status = http.StatusUnprocessableEntity
		data, err = &refusalsData{Wrong: "There is nothing at this address: " + said(problem, pathWords) + "."}, nil
	}
	if err != nil {
		return nil, err
	}
	plan, err := v.plan(v.customer.Plan, v.customer.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	names, err := v.meters()
	if err != nil {
		return nil, err
	}
	for _, key := range metersOf(&plan) {
		data.Meters = append(data.Meters, choice{Value: key, Text: titleOf(names.of(key)), On: key == asked.Get("meter")})
	}
	shown.data = data
	return shown, nil
}

// refusals asks for spells, the newest first.
func (v *visit) refusals(q url.Values) (*refusalsData, error) {
	list, err := v.api.Refusals(v.ctx(), v.key, q)
	if err != nil {
		return nil, err
	}
	names, err := v.meters()
	if err != nil {
		return nil, err
	}
	now, err := v.now()
	if err != nil {
		return nil, err
	}
	data := &refusalsData{}
	for i := range list.Items {
		r := &list.Items[i]
		data.Rows = append(data.Rows, refusalRow{When: v.spell(r, now), Then: v.passed(r, now), Limit: titleOf(names.of(r.Meter)), Name: r.Limit, Units: number(r.Units)})
	}
	if list.NextCursor != nil {
		next := url.Values{"cursor": {*list.NextCursor}}
		if meter := q.Get("meter"); meter != "" {
			next.Set("meter", meter)
		}
		data.Next = "/portal/refusals?" + next.Encode()
	}
	return data, nil
}

// spell is from when to when a limit refused.
func (v *visit) spell(r *client.Spell, now time.Time) string {
	from, to := r.From.In(v.zone), r.To.In(v.zone)
	text := when(from, now, v.zone)
	switch {
	case to.Sub(from) < time.Minute && from.Minute() == to.Minute():
		return text
	case daysBetween(from, to) == 0:
		return text + " – " + to.Format("15:04")
	}
	return text + " – " + when(to, now, v.zone)
}

// passed says when the last hit of a spell would have been admitted.
func (v *visit) passed(r *client.Spell, now time.Time) string {
	if r.AdmittedAt == nil {
		return "would never have passed"
	}
	return "would have passed at " + when(*r.AdmittedAt, now, v.zone)
}
