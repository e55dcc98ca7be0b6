package api

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"quotad/internal/plans"
)

func TestParseIfMatch(t *testing.T) {
	for _, c := range []struct {
		text string
		tags []string
		any  bool
		ok   bool
	}{
		{`*`, nil, true, true},
		{` * `, nil, true, true},
		{`"1"`, []string{"1"}, false, true},
		{`"1", "2"`, []string{"1", "2"}, false, true},
		{`"1","2"`, []string{"1", "2"}, false, true},
		{`W/"1"`, nil, false, true},
		{`W/"1", "2"`, []string{"2"}, false, true},
		{`,"1",,`, []string{"1"}, false, true},
		{`"a,b"`, []string{"a,b"}, false, true},
		{`""`, []string{""}, false, true},
		{``, nil, false, false},
		{`,`, nil, false, false},
		{`1`, nil, false, false},
		{`"1`, nil, false, false},
		{`"1" "2"`, nil, false, false},
		{`"1", *`, nil, false, false},
		{`w/"1"`, nil, false, false},
		{`"a b"`, nil, false, false},
		{"\"a\x7f\"", nil, false, false},
	} {
		tags, all, err := parseIfMatch(c.text)
		if (err == nil) != c.ok || err == nil && (all != c.any || !slices.Equal(tags, c.tags)) {
			t.Errorf("%s: %q %v %v, want %q %v", c.text, tags, all, err, c.tags, c.any)
		}
	}
}

func TestPreconditionOfAList(t *testing.T) {
	gone := errors.New("gone")
	for _, c := range []struct {
		lines   []string
		present string
		err     error
		want    plans.Precondition
	}{
		{nil, "1", nil, plans.Precondition{}},
		{[]string{`"1"`}, "", gone, plans.Precondition{Given: true, ETag: "1"}}, // one tag needs no look
		{[]string{`"1", "2"`}, "2", nil, plans.Precondition{Given: true, ETag: "2"}},
		{[]string{`"1"`, `"2"`}, "1", nil, plans.Precondition{Given: true, ETag: "1"}},
		{[]string{`"1", "2"`}, "3", nil, plans.Precondition{Given: true}},
		{[]string{`W/"3"`}, "3", nil, plans.Precondition{Given: true}},
		{[]string{`*`}, "3", nil, plans.Precondition{Given: true, Any: true}},
	} {
		h := http.Header{"If-Match": c.lines}
		if c.lines == nil {
			h = http.Header{}
		}
		got, err := precondition(h, func() (string, error) { return c.present, c.err })
		if err != nil || got != c.want {
			t.Errorf("%q: %+v %v, want %+v", c.lines, got, err, c.want)
		}
	}
}
