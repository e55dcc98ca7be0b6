package plans

import (
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, good := range []string{"a", "A.b_c:d-9", "0", "...", ".a", "-.", long} {
		if !ValidKey(good) {
			t.Errorf("%q must be a key", good)
		}
	}
	for _, bad := range []string{"", ".", "..", long + "x", "a b", "a/b", "ä", "a\x00", "a|b", "a@b", "\xff"} {
		if ValidKey(bad) {
			t.Errorf("%q must not be a key", bad)
		}
	}
	for text, want := range map[string]bool{".": true, "..": true, "a.b": true, "": false, "a b": false, long + "x": false} {
		if got := ValidName(text); got != want {
			t.Errorf("%q is a name: %t", text, got)
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
