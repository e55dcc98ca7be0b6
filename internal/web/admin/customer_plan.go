package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// A way is a time at which a change of plan can take effect, such as now or the period's end, with the texts
// that the page shows for it.
type way struct {
	change string // the API's value of change or when
	title  string
	note   string
	button string
	ask    string
}

// scheduled reports whether the change takes effect later, as a scheduled change.
func (w *way) scheduled() bool { return w.change == "period_end" || w.change == "base_end" }

// waysOf returns the possible ways to change from one plan to another. end is the end of the running billing
// period, or empty if there is no period.
func waysOf(now, next *client.Plan, end string) []way {
	name := "“" + cmp.Or(next.Name, next.Key) + "”"
	at := "the end of the billing period"
	if end != "" {
		at = end
	}
	all := []way{
		{
			change: "now", title: "Now", button: "Change now",
			note: "The billing period ends here and is billed. Limits and prices of " + name + " count at once.",
			ask:  "The running period ends and its invoice is made. This cannot be undone.",
		},
		{
			change: "limits_now", title: "Limits now, prices with the next period", button: "Change the limits now",
			note: "The limits of " + name + " count at once, and its prices from " + at + " on.",
			ask:  "Within a second the limits of " + name + " count. The prices follow with the next period.",
		},
		{
			change: "period_end", title: "At the period’s end", button: "Schedule it for the period’s end",
			note: "Nothing changes before. Limits and prices of " + name + " count from " + at + " on.",
			ask:  "Limits and prices change by themselves then. Until then it can be dropped here.",
		},
	}
	if now.BaseEvery > 1 {
		all = append(all, way{
			change: "base_end", title: "When the paid base price ends", button: "Schedule it for the end of the base price",
			note: "The base price is paid for " + strconv.Itoa(now.BaseEvery) + " periods. Limits and prices of " + name +
				" count from their end on, so that nothing is given back.",
			ask: "Limits and prices change by themselves then. Until then it can be dropped here.",
		})
	}
	return all
}

// name returns the name of the way's form.
func (w *way) name() string { return "way-" + w.change }

// form returns the way's button, which changes the plan only if the customer is unchanged since the page was
// shown.
func (w *way) form(s *subject) *form {
	member := "change"
	if w.scheduled() {
		member = "when"
	}
	return &form{
		Name: w.name(), Action: s.here("/plan"), Button: w.button, Class: "primary", Ask: w.ask, Sure: "Yes, do it",
		Fields: []field{
			{Name: "plan", Kind: kindHidden},
			{Name: "plan_version", Kind: kindNumber, Optional: true},
			{Name: member, Kind: kindHidden, Value: w.change},
			{Name: "etag", Kind: kindHidden, Value: s.etag},
		},
	}
}

func (v *visit) customerPlan() (*page.View, error) { return v.planPage(v.R.URL.Query(), nil) }

// planPage shows a customer's plan and the scheduled change. If another plan was chosen, planPage also shows
// each way to change to that plan and the cost of each way.
func (v *visit) planPage(chosen url.Values, back *form) (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	now, err := v.Plan(s.Plan, s.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	next, err := parts.NextPlan(v.Visit, s.ScheduledChange)
	if err != nil {
		return nil, err
	}
	version := words.Number(int64(now.Version)) + ", until a newer one is published for all"
	if s.PlanVersion != nil {
		version = words.Number(int64(now.Version)) + ", pinned"
	}
	sheet := v.page(s, "/plan")
	sheet.Sections = []section{{Title: "Plan", Facts: []parts.Fact{
		{Term: "Plan", Text: cmp.Or(now.Name, now.Key)}, {Term: "Version", Text: version}, {Term: "Base price", Text: parts.BasePrice(&now)},
	}}}
	open := v.isAdmin() && s.ArchivedAt == nil
	if next != nil {
		waits := section{Title: "Scheduled", Note: parts.Coming(s.ScheduledChange, next, v.Zone) + " Base price: " + parts.BasePrice(next) +
			". Another change of the plan takes this one away."}
		if open {
			waits.Forms = []*form{{
				Name: "drop", Action: s.here("/plan/drop"), Button: "Drop it", Class: "danger",
				Ask: "The plan stays as it is, also after that instant.", Sure: "Yes, drop it",
			}}
		}
		sheet.Sections = append(sheet.Sections, waits)
	}
	shown := sheet.shownAs(s.title(), "customers")
	if open {
		ways, status := v.ways(s, &now, chosen, back)
		sheet.Sections, shown.Status = append(sheet.Sections, ways...), status
	}
	return shown, nil
}

// ways returns the section for choosing a plan, and one section for each way to change to the chosen plan.
func (v *visit) ways(s *subject, now *client.Plan, chosen url.Values, back *form) (all []section, status int) {
	ask := section{Title: "Change the plan", Note: "Choose a plan to see each way to it. Nothing is changed yet.", Search: v.planSearch(chosen)}
	if chosen.Get("plan") == "" {
		return []section{ask}, 0
	}
	next, pin, wrong := v.chosenPlan(chosen)
	if wrong == "" && s.Plan == next.Key && (pin == nil) == (s.PlanVersion == nil) && (pin == nil || *pin == *s.PlanVersion) {
		wrong = "The customer is on this plan already."
	}
	if wrong != "" {
		return []section{ask, {Title: "This cannot be changed to", Failed: wrong}}, http.StatusUnprocessableEntity
	}
	end := ""
	ask.Facts = []parts.Fact{
		{Term: "To", Text: cmp.Or(next.Name, next.Key) + ", version " + words.Number(int64(next.Version))},
		{Term: "Base price", Text: parts.BasePrice(next)},
	}
	if is, err := v.API.Upcoming(v.Ctx(), v.Key, nil); err == nil { // an error means that the customer may not be billed
		end = v.instant(&is.PeriodEnd).Text
		ask.Facts = append(ask.Facts, parts.Fact{Term: "Next invoice as it is", Text: words.Money(is.TotalMinor, is.Currency)},
			parts.Fact{Term: "Period ends", Text: end})
	}
	all = []section{ask}
	ways := waysOf(now, next, end)
	if back != nil && !slices.ContainsFunc(ways, func(w way) bool { return back.Name == w.name() }) {
		all = append(all, section{Title: "Nothing was changed", Failed: back.Wrong})
	}
	var made []func() section
	for _, w := range ways {
		made = append(made, func() section { return v.waySection(s, &w, chosen, pin, back) })
	}
	return append(all, v.together(made...)...), 0
}

// planSearch returns the form for choosing a plan.
func (v *visit) planSearch(chosen url.Values) *search {
	plan := field{Name: "plan", Label: "Plan", Kind: kindText, Value: chosen.Get("plan")}
	list, err := v.API.Plans(v.Ctx(), url.Values{"limit": {"1000"}})
	switch {
	case err != nil:
		v.Note("the plans", err)
	case list.NextCursor == nil: // a longer list of plans is too long for a select
		plan.Kind = kindSelect
		for i := range list.Items {
			p := &list.Items[i]
			plan.Options = append(plan.Options, option{p.Key, cmp.Or(p.Name, p.Key) + ", " + parts.BasePrice(p)})
		}
	}
	return &search{[]field{plan, {Name: "plan_version", Label: "Pinned version, or none", Kind: kindNumber, Value: chosen.Get("plan_version")}}}
}

// chosenPlan returns the plan that a form names, in the pinned version or else the newest version. wrong is the
// error to show, if any.
func (v *visit) chosenPlan(chosen url.Values) (plan *client.Plan, pin *int, wrong string) {
	path := "/v1/plans/" + page.Segment(chosen.Get("plan"))
	if typed := strings.TrimSpace(chosen.Get("plan_version")); typed != "" {
		n, err := strconv.Atoi(typed)
		if err != nil || n < 1 {
			return nil, nil, "Write the version as a whole number from 1 on, or leave it out."
		}
		pin = &n
		path += "/versions/" + strconv.Itoa(n)
	}
	plan = new(client.Plan)
	_, err := v.API.Do(v.Ctx(), http.MethodGet, path, nil, nil, plan)
	switch problem, told := page.ProblemOf(err); {
	case page.NotThere(err):
		return nil, nil, "There is no such plan, or no such version of it."
	case told && problem.Status < http.StatusInternalServerError:
		return nil, nil, words.Said(problem, words.PathWords)
	case err != nil:
		v.Note("the plan", err)
		return nil, nil, "The plan could not be read just now."
	}
	return plan, pin, ""
}

// waySection returns the section of a way, with the cost of the change and its button.
func (v *visit) waySection(s *subject, w *way, chosen url.Values, pin *int, back *form) section {
	part := section{Title: w.title, Note: w.note}
	f := w.form(s)
	f.Fields[0].Value, f.Fields[1].Value = chosen.Get("plan"), strings.TrimSpace(chosen.Get("plan_version"))
	if back != nil && back.Name == f.Name {
		f.Wrong, f.Open = back.Wrong, true
	}
	part.Forms = []*form{f}
	costs, err := v.API.Preview(v.Ctx(), v.Key, client.PreviewRequest{Plan: chosen.Get("plan"), PlanVersion: pin, Change: w.change})
	if err != nil {
		problem, told := page.ProblemOf(err)
		if !told || problem.Status >= http.StatusInternalServerError {
			v.Note("what a change of plan costs", err)
			part.Note += " What it costs could not be computed just now."
			return part
		}
		part.Facts = []parts.Fact{{Term: "What it costs", Text: words.Said(problem, words.PathWords)}}
		return part
	}
	part.Facts = append(part.Facts, parts.Fact{Term: "Counts from", Text: v.instant(&costs.At).Text})
	if i := costs.Invoice; i != nil {
		part.Facts = append(part.Facts, parts.Fact{Term: "Invoice then", Text: words.Money(i.TotalMinor, i.Currency)})
		part.Table = v.lineTable(i)
		part.Table.Caption = "Lines: " + w.title
	} else if w.change != "limits_now" {
		part.Facts = append(part.Facts, parts.Fact{Term: "Invoice then", Text: "none"})
	}
	if i := costs.Upcoming; i != nil {
		part.Facts = append(part.Facts, parts.Fact{Term: "Next invoice", Text: words.Money(i.TotalMinor, i.Currency)},
			parts.Fact{Term: "Its period ends", Text: v.instant(&i.PeriodEnd).Text})
	}
	return part
}

// changePlan changes the plan in the submitted way if the customer is unchanged since the page was shown.
func (v *visit) changePlan() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	typed := v.Form
	w := &way{change: cmp.Or(typed.Get("when"), typed.Get("change"))}
	p := post{form: w.form(s), method: http.MethodPut, header: client.IfMatch(typed.Get("etag")), to: s.here("/plan?done=changed")}
	path := v.Of("")
	if w.scheduled() {
		path, p.header, p.to = v.Of("/scheduled-change"), nil, s.here("/plan?done=scheduled")
	} else {
		p.add = s.kept()
		p.add["name"], p.add["timezone"] = s.Name, s.Timezone
	}
	p.path = func(members map[string]any) string {
		delete(members, "etag")
		return path
	}
	return v.sent(p, func(back *form) (*page.View, error) {
		for _, f := range back.Fields {
			if f.Wrong != "" {
				back.Wrong = strings.TrimPrefix(back.Wrong+"; "+words.PathWords(f.Name)+": "+f.Wrong, "; ")
			}
		}
		return v.planPage(typed, back)
	})
}

func (v *visit) dropScheduled() (*page.View, error) {
	v.Key = v.R.PathValue("key")
	return v.press(func() error { return v.API.DropScheduledChange(v.Ctx(), v.Key) }, "/admin/customers/"+page.Segment(v.Key)+"/plan?done=dropped")
}
