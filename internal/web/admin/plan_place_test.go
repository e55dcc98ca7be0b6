package admin

import "testing"

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

func TestNamesOfChecks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"credits_add_up": "Credits add up", "a_new_check": "A new check", "": ""} {
		if got := checkName(name); got != want {
			t.Errorf("the check %q is %q, want %q", name, got, want)
		}
	}
}
