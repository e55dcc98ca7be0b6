package request

import (
	"reflect"
	"slices"
	"strings"
)

// Instead is the end of an error about an unknown name: the known name that was probably
// meant, and all known names. It is empty where no name is known.
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

// MembersOf are the names of the JSON members that a struct is read from.
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

// longestGuess is the longest name that is compared with known names, in bytes. All known
// members are shorter.
const longestGuess = 40

// Nearest is the known name that differs from name by a typing error, or in capitals and
// underscores only. It is empty when there is none. At least one name must be known.
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

// distance is how many bytes have to be changed, put in or left out to make a into b
// (Levenshtein's).
func distance(a, b string) int {
	row := make([]int, len(b)+1) // from what of a was read to each beginning of b
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
