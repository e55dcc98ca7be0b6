package web

import "testing"

// What the API says is said without its paths and calls.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"limits[1].window": "limit 2, window", "lines[0].amount_minor": "line 1, amount", "expires_at": "expires at", "": "", "a[x]": "a[x]",
	} {
		if got := pathWords(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
	for text, want := range map[string]string{
		"no such meter: declare it first with PUT /v1/meters/calls":                             "no such meter",
		"the plan has no such version: GET /v1/plans/pro/versions lists them":                   "the plan has no such version",
		"it is archived: make another under a new key (GET /v1/customers/a%20b still shows it)": "it is archived: make another under a new key",
		"is anonymous, and is not billed: name it with PUT /v1/customers/{key} first":           "is anonymous, and is not billed",
		"must be one of a, b": "must be one of a, b",
	} {
		if got := plainly(text); got != want {
			t.Errorf("%q is said as %q, want %q", text, got, want)
		}
	}
	for name, want := range map[string]string{"credits_add_up": "Credits add up", "a_new_check": "A new check", "": ""} {
		if got := checkName(name); got != want {
			t.Errorf("the check %q is %q, want %q", name, got, want)
		}
	}
}

// A problem of a draft stands beside a field that the editor has, and is called by its words.
func TestPlaceOf(t *testing.T) {
	t.Parallel()
	p := &planPage{URL: "/p"}
	typed := map[string]string{"limits": "2", "limits[0].name": "hourly", "prices": "1", "prices[0].meter": "calls"}
	for path, want := range map[string][2]string{
		"currency":                    {"Currency", "/p#f-currency"},
		"meters[3]":                   {"Other meters, one a line", "/p#f-meters"},
		"limits[0].window":            {"Limit hourly, window", "/p#f-limits-0-window"},
		"limits[1].limit":             {"Limit 2, units", "/p#f-limits-1-limit"},
		"limits[1]":                   {"Limit 2", "/p#f-limits-1-name"},
		"prices[0].tiers[1].up_to":    {"Price calls, tiers, one a line", "/p#f-prices-0-tiers"},
		"limits[9].burst":             {"limit 10, burst", ""},
		"features.seats":              {"features, seats", ""},
		"limits[0].something_unknown": {"Limit hourly", "/p#f-limits-0-name"},
	} {
		if got := p.placeOf(path, "", typed); got.Where != want[0] || got.URL != want[1] {
			t.Errorf("%s is at %q, %q", path, got.Where, got.URL)
		}
	}
}
