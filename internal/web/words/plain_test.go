package words

import "testing"

// What the API says is said without its paths and calls.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"limits[1].window": "limit 2, window", "lines[0].amount_minor": "line 1, amount", "expires_at": "expires at", "": "", "a[x]": "a[x]",
	} {
		if got := PathWords(path); got != want {
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
		if got := Plainly(text); got != want {
			t.Errorf("%q is said as %q, want %q", text, got, want)
		}
	}
}
