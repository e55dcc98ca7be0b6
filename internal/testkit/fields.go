package testkit

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// SameFields fails where two types do not have the same fields in JSON: one says what the other writes or
// reads. without are fields that only one of them has.
func SameFields(t testing.TB, one, other reflect.Type, without ...string) {
	t.Helper()
	names := func(of reflect.Type) (all []string) {
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && !f.Anonymous && name != "-" && !slices.Contains(without, name) {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return all
	}
	if a, b := names(one), names(other); len(a) == 0 || !slices.Equal(a, b) {
		t.Errorf("%s has the fields %q, and %s %q", one, a, other, b)
	}
}
