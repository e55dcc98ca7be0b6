package plans

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"quotad/internal/quota/model"
)

// maxName is the length of the longest name, in characters.
const maxName = 200

// faults gathers all that is wrong with an input, so that a caller hears of everything
// at once.
type faults struct{ list model.FieldErrors }

func (f *faults) add(field, format string, args ...any) {
	f.list = append(f.list, model.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// err is all that is wrong, or a plain nil. An empty model.FieldErrors would be an error that
// is not nil.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return f.list
}

func (f *faults) key(field, value string) bool {
	switch {
	case ValidKey(value):
		return true
	case value == "":
		f.add(field, "is required: it "+KeyRule)
	default:
		f.add(field, KeyRule)
	}
	return false
}

// must checks a required field. ok says whether its value is valid, and be what a valid value
// is.
func (f *faults) must(field, value, be string, ok bool) bool {
	switch {
	case ok:
	case value == "":
		f.add(field, "is required: %s", be)
	default:
		f.add(field, "must be %s", be)
	}
	return ok
}

// name checks a text for people. It must be valid UTF-8 of at most maxName characters, without
// control characters. A required one must not be blank.
func (f *faults) name(field, value string, required bool) {
	switch {
	case !PlainText(value):
		f.add(field, "must be valid UTF-8 without control characters")
	case utf8.RuneCountInString(value) > maxName:
		f.add(field, "must have at most %d characters", maxName)
	case required && blank(value):
		f.add(field, "is required: 1 to %d characters, not only spaces", maxName)
	}
}

func (f *faults) within(field string, n, least, most int64) {
	if n < least || n > most {
		f.add(field, "must be between %d and %d", least, most)
	}
}

// PlainText reports whether s is UTF-8 without control characters. That keeps NUL out, too, which
// neither text nor jsonb can hold.
func PlainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func blank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}

// CheckReason is what is wrong with the reason of a suspension: a text of 1 to 200 characters.
func CheckReason(reason string) error {
	var bad faults
	bad.name("reason", reason, true)
	return bad.err()
}
