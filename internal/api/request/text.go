package request

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
)

// CheckText trims white space from both ends of a required text, such as a reason or a description. It returns
// the fault of the text, or an empty string.
func CheckText(text *string) string {
	sent := *text
	*text = strings.TrimSpace(sent)
	if wrong := CheckReference(*text); wrong != "" {
		return wrong
	}
	switch {
	case sent == "":
		return "is required"
	case !plans.Says(*text):
		return plans.SeenRule
	}
	return ""
}

// CheckReference returns the fault of an optional reference to another system, or an empty string. The reference
// is stored unchanged.
func CheckReference(text string) string {
	if len(text) > locked.MaxReason || !plans.PlainText(text) {
		return "must be UTF-8 without control characters, at most " + strconv.Itoa(locked.MaxReason) + " bytes"
	}
	return ""
}

const wantStorable = "must be UTF-8 without the character U+0000"

// Storable reports whether PostgreSQL can store and compare a text.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// WrongText returns the problem of a field whose text CheckText rejects, or nil.
func WrongText(field string, text *string) error {
	if wrong := CheckText(text); wrong != "" {
		return problem.Invalid(field, wrong)
	}
	return nil
}
