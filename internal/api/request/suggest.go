package request

import (
	"reflect"
	"slices"
	"strings"
)

// Instead returns the end of an error about an unknown name: the known name that was probably meant, and all
// known names. It returns an empty string if there are no known names.
func Instead(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	all := "Known are " + strings.Join(known, ", ")
	if meant := Nearest(name, known); meant != "" {
		return ": did you mean " + meant + "? " + all
	}
	return ". " + all
}

// MembersOf returns the names of the JSON members of a struct.
func MembersOf(t reflect.Type) (names []string) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// longestGuess is the maximum length in bytes of a name that is compared with known names. All known members are
// shorter.
const longestGuess = 40

// Nearest returns the known name that differs from name by a typing error, or only in capitals and underscores.
// It returns an empty string if there is no such name. At least one name must be known.
func Nearest(name string, known []string) string {
	if len(name) > longestGuess {
		return ""
	}
	bare := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	name = bare(name)
	best := slices.MinFunc(known, func(a, b string) int { return distance(name, bare(a)) - distance(name, bare(b)) })
	if d := distance(name, bare(best)); d <= 2 && 2*d < len(name) {
		return best
	}
	return ""
}

// distance returns the number of bytes to change, insert or delete to turn a into b (the Levenshtein distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances from the prefix of a to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := corner
			if a[i] != b[j] {
				changed++
			}
			corner = row[j+1]
			row[j+1] = min(changed, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
