package portal

import (
	"net/http"
	"net/url"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

type refusalsData struct {
	Rows   []refusalRow
	Next   string
	Meters []parts.Choice
	Wrong  string
}

type refusalRow struct{ When, Then, Limit, Name, Units string }

func (v *visit) refusalsPage() (*page.View, error) {
	asked := v.R.URL.Query()
	q := url.Values{"limit": {"50"}}
	for _, name := range []string{"meter", "cursor"} {
		if asked.Get(name) != "" {
			q.Set(name, asked.Get(name))
		}
	}
	shown := &page.View{Sheet: "refusals", Title: "Refusals", Tab: "refusals"}
	data, err := v.refusals(q)
	if problem, told := page.ProblemOf(err); told && len(asked) > 0 &&
		(problem.Status == http.StatusUnprocessableEntity || problem.Status == http.StatusNotFound) {
		shown.Status = http.StatusUnprocessableEntity
		data, err = &refusalsData{Wrong: "There is nothing at this address: " + words.Said(problem, words.PathWords) + "."}, nil
	}
	if err != nil {
		return nil, err
	}
	plan, err := v.Plan(v.Customer.Plan, v.Customer.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	names, err := v.Meters()
	if err != nil {
		return nil, err
	}
	for _, key := range parts.MetersOf(&plan) {
		data.Meters = append(data.Meters, parts.Choice{Value: key, Text: page.TitleOf(names.Of(key)), On: key == asked.Get("meter")})
	}
	shown.Data = data
	return shown, nil
}

// refusals queries the refusal periods, the newest first.
func (v *visit) refusals(q url.Values) (*refusalsData, error) {
	list, err := v.API.Refusals(v.Ctx(), v.Key, q)
	if err != nil {
		return nil, err
	}
	names, err := v.Meters()
	if err != nil {
		return nil, err
	}
	now, err := v.Now()
	if err != nil {
		return nil, err
	}
	data := &refusalsData{}
	for i := range list.Items {
		r := &list.Items[i]
		data.Rows = append(data.Rows, refusalRow{
			When: v.period(r, now), Then: v.passed(r, now), Limit: page.TitleOf(names.Of(r.Meter)), Name: r.Limit,
			Units: words.Number(r.Units),
		})
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

// period returns the time span in which a limit refused hits, as text.
func (v *visit) period(r *client.RefusalPeriod, now time.Time) string {
	from, to := r.From.In(v.Zone), r.To.In(v.Zone)
	text := words.When(from, now, v.Zone)
	switch {
	case to.Sub(from) < time.Minute && from.Minute() == to.Minute():
		return text
	case words.DaysBetween(from, to) == 0:
		return text + " – " + to.Format("15:04")
	}
	return text + " – " + words.When(to, now, v.Zone)
}

// passed returns, as text, the instant at which the last hit of a refusal period would have been admitted.
func (v *visit) passed(r *client.RefusalPeriod, now time.Time) string {
	if r.AdmittedAt == nil {
		return "would never have passed"
	}
	return "would have passed at " + words.When(*r.AdmittedAt, now, v.Zone)
}
