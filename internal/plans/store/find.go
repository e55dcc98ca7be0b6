package store

import (
	"context"
	"strings"

	"quotad/internal/plans"
)

// afterKeys sorts after every character of a key.
const afterKeys = "\x7f"

const listCustomers = `SELECT` + customerColumns + `
	FROM customers c JOIN plans p ON p.id = c.plan_id
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
// through all keys in their order until enough names match, which a rare word makes long.
const findCustomers = `WITH named AS MATERIALIZED (
		SELECT key FROM customers WHERE name <> '' AND array_to_tsvector(name_words(name)) @@ (
			SELECT string_agg('''' || word || ''':*', ' & ')::tsquery FROM unnest(name_words($2)) word))
	SELECT` + customerColumns + `
	FROM customers c JOIN plans p ON p.id = c.plan_id
	WHERE c.key IN (
		(SELECT key FROM named WHERE key > $1 ORDER BY key LIMIT $5)
		UNION
		(SELECT key FROM customers WHERE key > $1 AND key >= $3 AND key < $4 ORDER BY key LIMIT $5))
	ORDER BY c.key LIMIT $5`

// FindCustomers returns the customers whose keys begin with text, and those whose names have for
// each word of text a word that begins with it, in any case, archived ones too. They are in the
// order of their keys. A text without letters and digits finds no names.
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
	found, err := list(ctx, s, scanCustomer, findCustomers, limit, after, text, from, to)
	if err != nil {
		return nil, err
	}
	return Paged(found, limit, KindCustomer, func(c *plans.Customer) string { return c.Key }), nil
}
