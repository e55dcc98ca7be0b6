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

// afterKeys sorts after every character of a key.
const afterKeys = "\x7f"

const listCustomers = `SELECT` + customerColumns + customerNow + `
	WHERE c.key > $1 AND c.key >= $2 AND c.key < $3 ORDER BY c.key LIMIT $4`

// ListCustomers returns the customers whose keys begin with prefix, archived ones too, in the
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

// findCustomers reads the names that match first and by themselves. Else PostgreSQL might go
// through all keys in their order until enough names match, which a rare word makes long. What is searched
// for stands in a query of its own: seen, a common word would have all customers read.
const findCustomers = `WITH named AS MATERIALIZED (
		SELECT key FROM customers WHERE name <> '' AND words @@ (SELECT $2::text::tsquery))
	SELECT` + customerColumns + customerNow + `
	WHERE c.key IN (
		(SELECT key FROM named WHERE key > $1 ORDER BY key LIMIT $5)
		UNION
		(SELECT key FROM customers WHERE key > $1 AND key >= $3 AND key < $4 ORDER BY key LIMIT $5))
	ORDER BY c.key LIMIT $5`

// FindCustomers returns the customers whose keys begin with text, and those whose names have for
// each word of text a word that begins with it, in any case, archived ones too. They are in the
// order of their keys. A text without letters, digits and symbols such as ☕ finds no names.
func (s *Store) FindCustomers(ctx context.Context, text string, page plans.Page) (*plans.List[*plans.Customer], error) {
	limit, after, err := OpenPage(page, KindCustomer, plans.ValidCustomerKey)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	from, to := text, text+afterKeys
	if !plans.ValidCustomerKey(text) {
		from, to = "", "" // no key begins with it
	}
	found, err := list(ctx, s, scanCustomer, findCustomers, limit, after, queryOf(text), from, to)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, KindCustomer, func(c *plans.Customer) string { return c.Key }), nil
}
