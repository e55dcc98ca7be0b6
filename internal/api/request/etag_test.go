package request

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"quotad/internal/plans"
)

func TestParseIfMatch(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	for _, c := range []struct {
		match, none []string
		want        plans.Precondition
	}{
		{nil, nil, plans.Precondition{}},
		{[]string{`"1"`}, nil, plans.Precondition{Given: true, ETags: []string{"1"}}},
		{[]string{`"1", "2"`}, nil, plans.Precondition{Given: true, ETags: []string{"1", "2"}}},
		{[]string{`"1"`, `"2"`}, nil, plans.Precondition{Given: true, ETags: []string{"1", "2"}}},
		{[]string{`W/"3"`}, nil, plans.Precondition{Given: true}},
		{[]string{`*`}, nil, plans.Precondition{Given: true, Any: true}},
		{nil, []string{` * `}, plans.Precondition{None: true}},
		{[]string{`"1"`}, []string{`*`}, plans.Precondition{Given: true, ETags: []string{"1"}, None: true}},
	} {
		h := http.Header{}
		if h["If-Match"] = c.match; c.match == nil {
			delete(h, "If-Match")
		}
		if h["If-None-Match"] = c.none; c.none == nil {
			delete(h, "If-None-Match")
		}
		if got, err := Precondition(h); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q %q: %+v %v, want %+v", c.match, c.none, got, err, c.want)
		}
	}
	for _, bad := range []string{`"1"`, `*, "1"`, ``, `"*"`} {
		if p, err := Precondition(http.Header{"If-None-Match": []string{bad}}); !errors.Is(err, errIfNoneMatch) {
			t.Errorf("If-None-Match: %s is %+v, %v", bad, p, err)
		}
	}
}
