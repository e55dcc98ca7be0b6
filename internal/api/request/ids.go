package request

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// An id is an idempotency key: an operation with an id is done once, however often it is sent. The id is the
// member "id" of the body or the header Idempotency-Key. Equal ids of two customers, or of two kinds of
// operations, are different ids.

// The kinds of operations are parts of stored keys and never change. OpBatch is the kind of the ids that a
// batch's header assigns to its hits, and OpWholeBatch is the kind of the id in the header itself. OpUnnamed is
// the kind of a reservation without an id.
const (
	OpHit         = "hit"
	OpBatch       = "batch"
	OpWholeBatch  = "whole batch"
	OpRefund      = "refund"
	OpReservation = "reservation"
	OpImport      = "import"
	OpAdjustment  = "adjustment"
	OpUnnamed     = "unnamed reservation"
)

// IdempotencyHeader is the header that may contain a request's id.
const IdempotencyHeader = "Idempotency-Key"

var errOtherID = problem.Invalid("id", "is another than that of the header Idempotency-Key: send one of them")

// CheckID returns the fault of an id, or an empty string.
func CheckID(id string) string {
	if id == "" || len(id) > model.MaxID || !plans.PlainText(id) {
		return "must be 1 to 255 bytes of UTF-8 without control characters"
	}
	return ""
}

// IdempotencyKey returns the id in the header, which is a quoted string of RFC 9651 or the text without quotes.
// It returns an empty string if there is no such header.
func IdempotencyKey(h http.Header) (string, error) {
	given := h[IdempotencyHeader]
	if len(given) == 0 {
		return "", nil
	}
	if len(given) > 1 {
		return "", problem.Invalid(IdempotencyHeader, "is there more than once")
	}
	id, ok := unquoteField(given[0])
	if !ok {
		return "", problem.Invalid(IdempotencyHeader,
			`must be one string in double quotes, in which only \" and \\ are escaped, or one that does not begin with a quote`)
	}
	if bad := CheckID(id); bad != "" {
		return "", problem.Invalid(IdempotencyHeader, bad)
	}
	return id, nil
}

// unquoteField parses a string of a structured field (RFC 9651, section 4.2.5). It returns a text without an
// opening quote unchanged.
func unquoteField(field string) (string, bool) {
	if !strings.HasPrefix(field, `"`) {
		return field, true
	}
	var text strings.Builder
	for i := 1; i < len(field); i++ {
		switch c := field[i]; {
		case c == '"':
			return text.String(), i == len(field)-1
		case c == '\\':
			i++
			if i == len(field) || field[i] != '"' && field[i] != '\\' {
				return "", false
			}
			text.WriteByte(field[i])
		case c < ' ' || c > '~':
			return "", false
		default:
			text.WriteByte(c)
		}
	}
	return "", false
}

// OneID returns the id of a request. own is the id in the body, and key is the id in the header. Both may be
// present if they are equal.
func OneID(own, key string) (string, error) {
	switch {
	case own == "":
		return key, nil
	case key != "" && key != own:
		return "", errOtherID
	}
	return own, nil
}

// PayloadOf returns the payload under an id: parts, followed by the attributes in the order of their names. The
// engine rejects an id that is sent again with another payload.
func PayloadOf(attributes map[string]string, parts ...string) []string {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		parts = append(parts, name, attributes[name])
	}
	return parts
}
