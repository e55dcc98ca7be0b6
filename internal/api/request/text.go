package request

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/locked"
)

// CheckText says what is wrong with what people write, such as a reason, or nothing.
func CheckText(text string, required bool) string {
	switch {
	case required && strings.TrimSpace(text) == "":
		return "is required, and not only spaces"
	case len(text) > locked.MaxReason || !plans.PlainText(text):
		return "must be UTF-8 without control characters, at most " + strconv.Itoa(locked.MaxReason) + " bytes"
	}
	return ""
}

const wantStorable = "must be UTF-8 without the character U+0000"

// storable reports whether PostgreSQL can store a text, and compare with it.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// WrongText is the problem of a field with such a text, or nil.
func WrongText(field, text string, required bool) error {
	if wrong := CheckText(text, required); wrong != "" {
		return problem.Invalid(field, wrong)
	}
	return nil
}
