package admin

import (
	"net/http"
	"net/url"
	"slices"

	"quotad/client"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/web/page"
	"quotad/internal/web/parts"
	"quotad/internal/web/words"
)

// overrideForm returns the form that overrides a limit for one customer.
func overrideForm(s *subject, limits []client.QuotaLimit) *form {
	var choice []option
	for i := range limits {
		if limits[i].Name == model.CapName { // no plan contains the cap limit
			continue
		}
		one := option{limits[i].Name, limits[i].Name + ", now " + words.Number(limits[i].Limit)}
		if limits[i].Mode == "shadow" {
			one.Text += ", a shadow"
		}
		choice = append(choice, one)
	}
	until := instantField("expires_at", "Until", s.zone)
	until.Help = "Without one it stays."
	return &form{Name: "override", Title: "Override a limit", Action: s.here("/overrides"), Button: "Override", Class: "primary", Fields: []field{
		{Name: "name", Label: "Limit", Kind: kindSelect, Options: choice},
		{Name: "limit", Label: "Units", Kind: kindNumber, Help: "In place of the plan's."},
		{Name: "burst", Label: "Burst", Kind: kindNumber, Optional: true, Help: "Of token buckets."},
		until,
		{Name: "reason", Label: "Reason", Kind: kindText, Optional: true},
	}}
}

// overrides returns the section of a customer's overrides.
func (v *visit) overrides(s *subject, state *parts.Standing, back *form) section {
	list, err := v.API.Overrides(v.Ctx(), v.Key, url.Values{"limit": {"1000"}})
	if err != nil {
		v.Note("the overrides", err)
		return section{Title: "Overrides", Failed: "The overrides could not be read just now."}
	}
	writes := v.may(plans.ScopeAdmin, plans.ScopeSupport)
	t := &table{
		Caption: "Overrides", Head: []column{{Text: "Limit"}, {Text: "Units", Numeric: true}, {Text: "Until"}, {Text: "Reason"}, {}},
		Empty: "The plan's limits hold",
	}
	for i := range list.Items {
		o := &list.Items[i]
		last := cell{}
		if writes {
			last.Form = &form{
				Name: "delete", Action: s.here("/overrides/" + page.Segment(o.Name) + "/delete"), Button: "Delete", Class: "danger",
				Ask: "Then the plan’s own limit “" + o.Name + "” counts again, within a second.", Sure: "Yes, delete it",
			}
		}
		name := text(o.Name)
		if slices.ContainsFunc(state.Quota.Limits, func(l client.QuotaLimit) bool { return l.Name == o.Name && l.Mode == "shadow" }) {
			name.Chip = &parts.Chip{Class: "accent", Text: "Shadow"}
		}
		t.Rows = append(t.Rows, []cell{name, amount(words.Number(o.Limit)), v.instant(o.ExpiresAt), text(o.Reason), last})
	}
	part := section{Title: "Overrides", Table: t}
	if made := overrideForm(s, state.Quota.Limits); writes && len(made.Fields[0].Options) > 0 {
		part.Forms = []*form{made}
		if back != nil && back.Name == "override" {
			part.Forms[0] = back
		}
	}
	return part
}

func (v *visit) saveOverride() (*page.View, error) {
	s, err := v.subject()
	if err != nil {
		return nil, err
	}
	state, err := parts.StandingOf(v.Visit)
	if err != nil {
		return nil, err
	}
	return v.sent(post{
		form: overrideForm(s, state.Quota.Limits), method: http.MethodPut, path: named(v.Of("/overrides/"), "name"), to: s.here("?done=saved"),
	}, v.limitsPage)
}

func (v *visit) deleteOverride() (*page.View, error) {
	v.Key = v.R.PathValue("key")
	return v.press(func() error { return v.API.DeleteOverride(v.Ctx(), v.Key, v.R.PathValue("limit")) }, "/admin/customers/"+page.Segment(v.Key)+"?done=deleted")
}
