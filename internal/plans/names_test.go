package plans

import (
	"slices"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, good := range []string{"a", "A.b_c:d-9", "0", ".", "..", long} {
		if !ValidKey(good) {
			t.Errorf("%q must be a key", good)
		}
	}
	for _, bad := range []string{"", long + "x", "a b", "a/b", "ä", "a\x00", "a|b", "a@b", "\xff"} {
		if ValidKey(bad) {
			t.Errorf("%q must not be a key", bad)
		}
	}
	for _, good := range []string{"auth0|x", "a@b.example", "2001:db8::1", "a b", "~", "...", "%2F", long} {
		if !ValidCustomerKey(good) {
			t.Errorf("%q must be a customer's key", good)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", long + "x", "ä", "a\x00", "a\n", "\x7f", "\xff"} {
		if ValidCustomerKey(bad) {
			t.Errorf("%q must not be a customer's key", bad)
		}
	}
}

func TestPages(t *testing.T) {
	for _, limit := range []int{1, 1000} {
		if got, _, err := openPage(Page{Limit: limit}, "meter", ValidKey); got != limit || err != nil {
			t.Errorf("limit %d: %d, %v", limit, got, err)
		}
	}
	if got, after, err := openPage(Page{}, "meter", ValidKey); got != defaultPage || after != "" || err != nil {
		t.Errorf("default: %d %q %v", got, after, err)
	}
	next := paged([]string{"a", "b", "c"}, 2, "meter", func(s string) string { return s }).Next
	if _, after, err := openPage(Page{Limit: 2, Cursor: next}, "meter", ValidKey); after != "b" || err != nil {
		t.Errorf("%q: %q, %v", next, after, err)
	}
	if last := paged([]string{"a", "b"}, 2, "meter", func(s string) string { return s }); last.Next != "" || len(last.Items) != 2 {
		t.Errorf("last page: %+v", last)
	}
	for _, c := range []struct {
		page Page
		want []string
	}{
		{Page{Limit: -1}, []string{"limit"}},
		{Page{Limit: 1001}, []string{"limit"}},
		{Page{Cursor: "?"}, []string{"cursor"}},
		{Page{Cursor: next + "="}, []string{"cursor"}},
		{Page{Cursor: strings.Repeat("A", 2000)}, []string{"cursor"}},
		{Page{Cursor: "bWV0ZXIvAA", Limit: -1}, []string{"limit", "cursor"}}, // meter/\x00
	} {
		if _, _, err := openPage(c.page, "meter", ValidKey); !slices.Equal(fields(err), c.want) {
			t.Errorf("%+v: %v", c.page, err)
		}
	}
	if _, _, err := openPage(Page{Cursor: next}, "plan", ValidKey); !slices.Equal(fields(err), []string{"cursor"}) {
		t.Errorf("a cursor of another list: %v", err)
	}
}

func TestFaultsAreNilWhenNone(t *testing.T) {
	var none faults
	if err := none.err(); err != nil {
		t.Errorf("got %v", err)
	}
	none.add("a", "%d", 1)
	if err := none.err(); err == nil || err.Error() != "a: 1" {
		t.Errorf("got %v", err)
	}
}
