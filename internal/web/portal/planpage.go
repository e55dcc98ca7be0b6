package portal

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// planData is a plan as the portal shows it to a customer.
type planData struct {
	Name, Version, Since string
	Price                string
	Notes                []string
	Meters               []planMeter
	Versions             []planVersion
	Following            bool   // newer versions apply automatically
	Coming, ComingPrice  string // the scheduled plan
	Others               []otherPlan
}

// otherPlan is a plan that the customer may request.
type otherPlan struct {
	Key, Name, Price string
	Asked            string // day of the customer's request, or empty if there is none
}

// planMeter contains a plan's limits and prices of one meter.
type planMeter struct {
	Title  string
	Limits []string
	Prices []string
}

type planVersion struct {
	Version, Since, Price string
	Here                  bool
}

func (v *visit) planPage() (*page.View, error) {
	plan, err := v.Plan(v.Customer.Plan, v.Customer.EffectiveVersion)
	if err != nil {
		return nil, err
	}
	next, err := parts.NextPlan(v.Visit, v.Customer.ScheduledChange)
	if err != nil {
		return nil, err
	}
	names, err := v.Meters()
	if err != nil {
		return nil, err
	}
	list, err := v.API.Versions(v.Ctx(), plan.Key, url.Values{"limit": {"100"}})
	if err != nil {
		return nil, err
	}
	data := planData{
		Name: cmp.Or(plan.Name, plan.Key), Version: words.Number(int64(plan.Version)), Since: v.day(plan.CreatedAt),
		Price: parts.BasePrice(&plan), Notes: planNotes(&plan), Following: v.Customer.PlanVersion == nil,
	}
	if next != nil {
		data.Coming, data.ComingPrice = parts.Coming(v.Customer.ScheduledChange, next, v.Zone), parts.BasePrice(next)
	}
	if data.Others, err = v.otherPlans(); err != nil {
		return nil, err
	}
	for _, key := range parts.MetersOf(&plan) {
		data.Meters = append(data.Meters, v.planMeter(&plan, names.Of(key)))
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Version > plan.Version {
			continue // newer than the customer's version
		}
		data.Versions = append(data.Versions, planVersion{words.Number(int64(p.Version)), v.day(p.CreatedAt), parts.BasePrice(p), p.Version == plan.Version})
	}
	return &page.View{Sheet: "plan", Title: "Plan", Tab: "plan", Data: data}, nil
}

// otherPlans returns the plans that the customer may request. It leaves out plans that do not exist yet.
func (v *visit) otherPlans() (all []otherPlan, err error) {
	var asked client.List[client.PlanRequest]
	for _, key := range v.Site.Options.Plans {
		if next := v.Customer.ScheduledChange; key == v.Customer.Plan || next != nil && key == next.Plan {
			continue
		}
		plan, err := v.API.Plan(v.Ctx(), key)
		if page.NotThere(err) {
			continue
		}
		if err == nil && asked.Items == nil {
			asked, err = v.API.PlanRequests(v.Ctx(), v.Key)
		}
		if err != nil {
			return nil, err
		}
		other := otherPlan{Key: key, Name: cmp.Or(plan.Name, key), Price: parts.BasePrice(&plan)}
		for _, r := range asked.Items {
			if r.Plan == key {
				other.Asked = v.day(r.At)
			}
		}
		all = append(all, other)
	}
	return all, nil
}

// askForPlan records the customer's request for a plan.
func (v *visit) askForPlan() (*page.View, error) {
	plan := v.R.PathValue("plan")
	if !slices.Contains(v.Site.Options.Plans, plan) {
		return nil, page.ErrMissing
	}
	_, err := v.API.RequestPlan(v.AsSupport(), v.Key, client.PlanRequestRequest{Plan: plan})
	return &page.View{To: "/portal/plan"}, err
}

func (v *visit) day(at time.Time) string { return at.In(v.Zone).Format("2 January 2006") }

func planNotes(p *client.Plan) (notes []string) {
	switch {
	case p.BasePriceMinor > 0 && p.BaseEvery > 1:
		notes = append(notes, "The base price is due in advance for "+strconv.Itoa(p.BaseEvery)+" periods. What is used is billed after each.")
	case p.BasePriceMinor > 0 && p.BaseIn == "advance":
		notes = append(notes, "The base price is due before each period.")
	}
	if p.MinimumMinor > 0 {
		notes = append(notes, "A period costs at least "+words.Money(p.MinimumMinor, p.Currency)+".")
	}
	return notes
}

func (v *visit) planMeter(plan *client.Plan, m client.Meter) planMeter {
	row := planMeter{Title: page.TitleOf(m)}
	for _, l := range plan.Limits {
		if l.Meter != m.Key || l.Mode == "shadow" {
			continue
		}
		state := client.QuotaLimit{Name: l.Name, Algorithm: l.Algorithm, Limit: l.Limit, Remaining: l.Limit}
		if l.Burst != nil {
			state.Remaining = *l.Burst
		}
		text := parts.Rule(&state, &l)
		switch {
		case l.Limit == 0:
			text = "Nothing is let through"
		case l.Mode == "soft":
			text += ", and on beyond it"
		}
		if l.Per != "" {
			text += ", for each " + l.Per
		}
		row.Limits = append(row.Limits, text)
	}
	if row.Limits == nil {
		row.Limits = []string{"No limit"}
	}
	for i := range plan.Prices {
		if plan.Prices[i].Meter == m.Key {
			row.Prices = priceWords(&plan.Prices[i], plan.Currency, m.Unit)
		}
	}
	if row.Prices == nil {
		row.Prices = []string{"Free"}
	}
	return row
}

// priceWords describes a price in words.
func priceWords(p *client.Price, currency, unit string) (all []string) {
	switch {
	case p.Model == "per_unit" && p.UnitPrice != nil:
		all = append(all, words.PerUnit(*p.UnitPrice, currency))
	case p.Model == "package" && p.PackagePrice != nil && p.PackageSize != nil:
		all = append(all, fmt.Sprintf("%s for every %s begun", words.Price(*p.PackagePrice, currency), words.Short(*p.PackageSize)))
	case p.Model == "graduated", p.Model == "volume":
		all = append(all, tierWords(p, currency)...)
	default: // a test checks that each model has words
		all = append(all, p.Model)
	}
	if by := map[string]string{
		"average": "of what is held on the average", "peak": "of the most that is held",
		"last": "of what is held at the end of a period",
	}[p.LevelBy]; by != "" {
		all = append(all, by)
	}
	if p.Included > 0 {
		all = append([]string{words.Short(p.Included) + " " + words.Plural(p.Included, cmp.Or(unit, "unit")) + " included, then"}, all...)
	}
	if p.MinimumMinor != nil && *p.MinimumMinor > 0 {
		all = append(all, "at least "+words.Money(*p.MinimumMinor, currency)+" a period")
	}
	if p.MaximumMinor != nil {
		all = append(all, "at most "+words.Money(*p.MaximumMinor, currency)+" a period")
	}
	return all
}

// tierWords describes the price of each tier in words.
func tierWords(p *client.Price, currency string) (all []string) {
	next := p.Model == "graduated" && p.Included > 0 // tiers begin after the included units
	if p.Model == "volume" && p.Included > 0 {
		all = append(all, "all units beyond these at the price of the tier that they reach:")
	} else if p.Model == "volume" {
		all = append(all, "all at the price of the tier that they reach:")
	}
	var from int64
	for _, t := range p.Tiers {
		text := words.PerUnit(t.UnitPrice, currency)
		if t.FlatPrice != nil && strings.Trim(*t.FlatPrice, "0.") != "" {
			text += " and " + words.Price(*t.FlatPrice, currency)
		}
		switch {
		case t.UpTo == nil && next && from > 0:
			all = append(all, "beyond that: "+text)
		case t.UpTo == nil:
			all = append(all, "above "+words.Short(from)+": "+text)
		case next:
			all = append(all, "the next "+words.Short(*t.UpTo-from)+": "+text)
		default:
			all = append(all, "up to "+words.Short(*t.UpTo)+": "+text)
		}
		if t.UpTo == nil {
			break
		}
		from = *t.UpTo
	}
	return all
}
