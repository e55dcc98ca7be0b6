package store

import (
	"context"
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

// OpenPage checks a page. OpenPage returns the page's size and the position of the last item seen, which
// the cursor encodes. kind names the list, and a cursor of another list is rejected like a malformed
// cursor. Cursors are opaque to callers.
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

// Paged returns a page of at most limit items. The statement queried limit+1 items, so an extra item
// means that there is a next page.
func Paged[T any](items []T, limit int, kind string, position func(T) string) *plans.List[T] {
	list := &plans.List[T]{Items: items}
	if len(items) > limit {
		list.Items = items[:limit]
		list.Next = Cursor(kind, position(items[limit-1]))
	}
	return list
}

// Cursor encodes a position in a list of a kind as a cursor.
func Cursor(kind, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(kind + "/" + position))
}

// afterKeys sorts after every character of a key.
const afterKeys = "\x7f"

const listCustomers = `SELECT` + customerColumns + customerNow + `
	WHERE c.key > $1 AND c.key >= $2 AND c.key < $3 ORDER BY c.key LIMIT $4`

// ListCustomers returns the customers whose keys begin with prefix, including archived customers, in the
// order of their keys.
func (s *Store) ListCustomers(ctx context.Context, prefix string, page plans.Page) (*plans.List[*plans.Customer], error) {
	limit, after, err := OpenPage(page, KindCustomer, plans.ValidCustomerKey)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, s, scanCustomer, listCustomers, limit, after, prefix, prefix+afterKeys)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, KindCustomer, func(c *plans.Customer) string { return c.Key }), nil
}

// findCustomers searches the matching names first, in a separate subquery. Otherwise PostgreSQL might
// scan all keys in order until enough names match, which takes long for a rare word. The search term is
// in a subselect, because the planner would read all customers if it knew that the term is a common word.
const findCustomers = `WITH named AS MATERIALIZED (
		SELECT key FROM customers WHERE name <> '' AND words @@ (SELECT $2::text::tsquery))
	SELECT` + customerColumns + customerNow + `
	WHERE c.key IN (
		(SELECT key FROM named WHERE key > $1 ORDER BY key LIMIT $5)
		UNION
		(SELECT key FROM customers WHERE key > $1 AND key >= $3 AND key < $4 ORDER BY key LIMIT $5))
	ORDER BY c.key LIMIT $5`

// FindCustomers returns the customers whose keys begin with text or whose names match text, including
// archived customers, in the order of their keys. A name matches if each word of text is the beginning of
// a word in the name, in any case. A text without letters, digits and symbols such as ☕ matches no names.
func (s *Store) FindCustomers(ctx context.Context, text string, page plans.Page) (*plans.List[*plans.Customer], error) {
	limit, after, err := OpenPage(page, KindCustomer, plans.ValidCustomerKey)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	from, to := text, text+afterKeys
	if !plans.ValidCustomerKey(text) {
		from, to = "", "" // no key begins with this text
	}
	found, err := list(ctx, s, scanCustomer, findCustomers, limit, after, queryOf(text), from, to)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, KindCustomer, func(c *plans.Customer) string { return c.Key }), nil
}
