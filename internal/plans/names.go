package plans

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"quotad/internal/quota"
)

// The longest key, in bytes, and the longest name, in characters.
const (
	maxKey  = 200
	maxName = 200
)

// What is said of a key that ValidKey or ValidCustomerKey refuses.
const (
	KeyRule         = "must be 1 to 200 letters, digits or . _ : -"
	CustomerKeyRule = `must be 1 to 200 bytes of printable ASCII without "/", and not "." or ".."`
)

// ValidKey reports whether s may be the key of a meter, plan or limit: 1 to 200 ASCII
// letters, digits or one of . _ : -
func ValidKey(s string) bool {
	if s == "" || len(s) > maxKey {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

// ValidCustomerKey reports whether s may be the key of a customer: 1 to 200 bytes of
// printable ASCII (the space included) without "/", and not "." or "..", which paths
// swallow.
func ValidCustomerKey(s string) bool {
	if s == "" || len(s) > maxKey || s == "." || s == ".." {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '/' {
			return false
		}
	}
	return true
}

// maxShown is how much of a value that a client sent an error repeats, in bytes.
const maxShown = 100

// Shorten cuts what a client sent to what an error may repeat of it.
func Shorten(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// faults gathers all that is wrong with an input, so that a caller hears of everything
// at once.
type faults struct{ list quota.FieldErrors }

func (f *faults) add(field, format string, args ...any) {
	f.list = append(f.list, quota.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// err is nil, not an empty quota.FieldErrors, when nothing is wrong.
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

// must checks a field that has to be there, ok being whether its value is what it must be.
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

// name checks a text for people: valid UTF-8, at most maxName characters, none of them a
// control character, and not blank unless it may be left out.
func (f *faults) name(field, value string, required bool) {
	switch {
	case !plainText(value):
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

// plainText also keeps NUL out, which neither text nor jsonb can hold.
func plainText(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}

func blank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}
