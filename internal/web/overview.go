package web

import (
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"quotad/client"
)

// overviewData is the portal's first page. Each part can fail alone.
type overviewData struct {
	Outlook *outlook
	Limits  limitsData
	Stream  string     // where new limits come from
	Failed  bool       // the limits could not be read
	Usage   *usageData // nil: it could not be read
	Cost    *costData
	CostOut bool          // it could not be read
	Refused *refusalsData // nil: they could not be read
}

// limitsData is the part of the page that a stream sends again.
type limitsData struct {
	Cards   []card
	Counted []countedData
	Filter  bool     // there are many
	Hidden  []hidden // values of attributes, which the form of another attribute keeps
}

// hidden is a field that a form keeps.
type hidden struct{ Name, Value string }

// countedData is a meter without limits.
type countedData struct{ Title, Unit, Used string }

// filterFrom is the number of cards from which a page has a filter.
const filterFrom = 13

func (v *visit) overview() (*view, error) {
	if v.customer.ArchivedAt != nil {
		return v.archived(), nil
	}
	data := overviewData{}
	shown := &view{sheet: "overview", title: "Usage and limits", tab: "overview", live: true}
	state, err := v.overviewParts(&data)
	switch problem, asked := problemOf(err); {
	case asked && problem.Status == http.StatusUnprocessableEntity: // a value of an attribute that cannot be
		return nil, err
	case err != nil:
		v.note("the limits", err)
		data.Failed, shown.live = true, false
	default:
		data.Limits = state.limits()
		query, _ := v.attributes()
		data.Stream = (&url.URL{Path: "/portal/live", RawQuery: query.Encode()}).String()
		data.Outlook = v.outlook(state)
	}
	shown.data = data
	return shown, nil
}

// overviewParts asks for the parts of the page at the same time. The error is that of the limits;
// of the others a part that failed is missing.
func (v *visit) overviewParts(data *overviewData) (state *standing, err error) {
	var all sync.WaitGroup
	v.beside(&all, "the usage", func() (err error) {
		data.Usage, _, err = v.usage(v.customer, "/portal/usage", nil)
		if err == nil {
			data.Usage.More = "/portal/usage"
		}
		return err
	}, func() { data.Usage = nil })
	v.beside(&all, "the cost", func() (err error) {
		data.Cost, err = v.cost()
		return err
	}, func() { data.Cost, data.CostOut = nil, true })
	v.beside(&all, "the refusals", func() (err error) {
		data.Refused, err = v.refusals(url.Values{"limit": {"5"}})
		return err
	}, func() { data.Refused = nil })
	state, err = v.standing()
	all.Wait()
	return state, err
}

// beside makes a part of a page while others are made. A part that fails, or panics, fails alone.
func (v *visit) beside(all *sync.WaitGroup, part string, do func() error, without func()) {
	all.Go(func() {
		var err error
		defer func() {
			p := recover()
			switch {
			case p != nil:
				v.site.options.Log.Error("panic while making a part of a page", "part", part, "path", v.r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			case err != nil:
				v.note(part, err)
			default:
				return
			}
			without()
		}()
		err = do()
	})
}

// note logs why a part of a page is missing.
func (v *visit) note(part string, err error) {
	v.site.options.Log.Warn("part of a page cannot be shown", "part", part, "path", v.r.URL.Path, "error", err)
}

func (v *visit) archived() *view {
	return &view{sheet: "archived", title: "This account is closed", tab: "overview", data: struct{ Since string }{
		v.customer.ArchivedAt.In(v.zone).Format("2 January 2006"),
	}}
}

// standing is all that the limits' part of a page is made from.
type standing struct {
	quota  client.Quota
	plan   client.Plan
	meters meterNames
	cards  []card
	query  []hidden
}

// standing asks how the session's customer stands.
func (v *visit) standing() (*standing, error) {
	s := &standing{}
	query, values := v.attributes()
	var err error
	if s.quota, err = v.api.Quota(v.ctx(), v.key, query); err != nil {
		return nil, err
	}
	if s.plan, err = v.plan(s.quota.Plan, s.quota.PlanVersion); err != nil {
		return nil, err
	}
	if s.meters, err = v.meters(); err != nil {
		return nil, err
	}
	s.cards, s.query = v.cards(&s.quota, &s.plan, s.meters), values
	v.addOpen(s)
	return s, nil
}

// of is a path of the API below the customer whom the page is about.
func (v *visit) of(rest string) string { return "/v1/customers/" + segment(v.key) + rest }

// attributes are the values of limits per attribute that a page is asked for, as parameters of the
// API's.
func (v *visit) attributes() (query url.Values, values []hidden) {
	asked := v.r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if !strings.HasPrefix(name, "attr.") || asked.Get(name) == "" {
			delete(asked, name)
			continue
		}
		asked[name] = asked[name][:1]
		values = append(values, hidden{name, asked.Get(name)})
	}
	return asked, values
}

func (s *standing) limits() limitsData {
	data := limitsData{Cards: s.cards, Filter: len(s.cards) >= filterFrom, Hidden: s.query}
	limited := map[string]bool{}
	for i := range s.quota.Limits {
		if s.quota.Limits[i].Mode != "shadow" {
			limited[s.quota.Limits[i].Meter] = true
		}
	}
	for _, m := range s.quota.Meters {
		if !limited[m.Meter] {
			data.Counted = append(data.Counted, countedData{titleOf(s.meters.of(m.Meter)), plural(m.Used, m.Unit), number(m.Used)})
		}
	}
	return data
}
