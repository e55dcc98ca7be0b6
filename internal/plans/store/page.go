package store

import (
	"encoding/base64"
	"fmt"
	"strings"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// defaultPage is the size of a page whose Limit is 0.
const defaultPage = 100

// maxCursor is the longest cursor that is decoded, in bytes.
const maxCursor = 1000

// OpenPage checks a page. It returns the page's size, and the position of the last item seen,
// which the cursor stands for. kind names the list: a cursor of another list is refused like a
// malformed one. Cursors are opaque to callers.
func OpenPage(p plans.Page, kind string, valid func(position string) bool) (limit int, after string, err error) {
	var bad model.FieldErrors
	limit = p.Limit
	if limit == 0 {
		limit = defaultPage
	}
	if limit < 1 || limit > plans.MaxPage {
		bad = append(bad, model.FieldError{Field: "limit", Detail: fmt.Sprintf("must be between 1 and %d", plans.MaxPage)})
	}
	if p.Cursor != "" {
		text, decodeErr := "", error(nil)
		if len(p.Cursor) <= maxCursor {
			var raw []byte
			raw, decodeErr = base64.RawURLEncoding.Strict().DecodeString(p.Cursor)
			text = string(raw)
		}
		position, ok := strings.CutPrefix(text, kind+"/")
		if decodeErr != nil || !ok || !valid(position) {
			bad = append(bad, model.FieldError{Field: "cursor", Detail: "is not one that this list gave: start without it"})
		}
		after = position
	}
	if len(bad) > 0 {
		return limit, after, bad
	}
	return limit, after, nil
}

// Paged makes a page of at most limit items. The statement asked for limit+1 items: one item
// too many means that there is a next page.
func Paged[T any](items []T, limit int, kind string, position func(T) string) *plans.List[T] {
	list := &plans.List[T]{Items: items}
	if len(items) > limit {
		list.Items = items[:limit]
		list.Next = Cursor(kind, position(items[limit-1]))
	}
	return list
}

// Cursor is what stands for a position in a list of a kind.
func Cursor(kind, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + "/" + position))
}
