package request

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
)

// CheckText takes the white space off both ends of what people must write, such as a reason or a
// description. It says what is wrong with the text, or nothing.
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

// CheckReference says what is wrong with what something is known by elsewhere, or nothing. It may be left
// out, and is kept as it was sent.
func CheckReference(text string) string {
	if len(text) > locked.MaxReason || !plans.PlainText(text) {
		return "must be UTF-8 without control characters, at most " + strconv.Itoa(locked.MaxReason) + " bytes"
	}
	return ""
}

const wantStorable = "must be UTF-8 without the character U+0000"

// Storable reports whether PostgreSQL can store a text, and compare with it.
func Storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// WrongText is the problem of a field with a text that CheckText finds something wrong with, or nil.
func WrongText(field string, text *string) error {
	if wrong := CheckText(text); wrong != "" {
		return problem.Invalid(field, wrong)
	}
	return nil
}
