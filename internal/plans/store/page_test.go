package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

func TestPages(t *testing.T) {
	told := func(err error) (paths []string) {
		faults, _ := errors.AsType[model.FieldErrors](err)
		for _, f := range faults {
			paths = append(paths, f.Field)
		}
		return paths
	}
	for _, limit := range []int{1, 1000} {
		if got, _, err := OpenPage(plans.Page{Limit: limit}, "meter", plans.ValidKey); got != limit || err != nil {
			t.Errorf("limit %d: %d, %v", limit, got, err)
		}
	}
	if got, after, err := OpenPage(plans.Page{}, "meter", plans.ValidKey); got != defaultPage || after != "" || err != nil {
		t.Errorf("default: %d %q %v", got, after, err)
	}
	next := Paged([]string{"a", "b", "c"}, 2, "meter", func(s string) string { return s }).Next
	if _, after, err := OpenPage(plans.Page{Limit: 2, Cursor: next}, "meter", plans.ValidKey); after != "b" || err != nil {
		t.Errorf("%q: %q, %v", next, after, err)
	}
	if last := Paged([]string{"a", "b"}, 2, "meter", func(s string) string { return s }); last.Next != "" || len(last.Items) != 2 {
		t.Errorf("last page: %+v", last)
	}
	for _, c := range []struct {
		page plans.Page
		want []string
	}{
		{plans.Page{Limit: -1}, []string{"limit"}},
		{plans.Page{Limit: 1001}, []string{"limit"}},
		{plans.Page{Cursor: "?"}, []string{"cursor"}},
		{plans.Page{Cursor: next + "="}, []string{"cursor"}},
		{plans.Page{Cursor: strings.Repeat("A", 2000)}, []string{"cursor"}},
		{plans.Page{Cursor: "bWV0ZXIvAA", Limit: -1}, []string{"limit", "cursor"}}, // meter/\x00
	} {
		if _, _, err := OpenPage(c.page, "meter", plans.ValidKey); !slices.Equal(told(err), c.want) {
			t.Errorf("%+v: %v", c.page, err)
		}
	}
	if _, _, err := OpenPage(plans.Page{Cursor: next}, "plan", plans.ValidKey); !slices.Equal(told(err), []string{"cursor"}) {
		t.Errorf("a cursor of another list: %v", err)
	}
}
