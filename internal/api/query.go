package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"quotad/internal/plans"
)

// A query is the parameters of a request: each known, and given at most once.
type query map[string]string

// parseQuery refuses what the route does not know, so that a misspelled parameter is
// noticed and not ignored.
func parseQuery(r *http.Request, known []param) (query, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	if len(r.URL.RawQuery) > 4<<10 {
		return nil, invalid("", "the query has more than 4096 bytes")
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("", "the query is not well-formed")
	}
	q := make(query, len(values))
	for name, given := range values {
		if !slices.ContainsFunc(known, func(p param) bool { return p.name == name }) {
			return nil, invalid(shorten(name), "is not a parameter of this route")
		}
		if len(given) > 1 {
			return nil, invalid(name, "is there more than once")
		}
		q[name] = given[0]
	}
	return q, nil
}

// defaultPage is how many items a page has when the request does not say.
const defaultPage = 100

// page reads limit and cursor; whether the cursor is one, its list knows.
func (q query) page() (plans.Page, error) {
	p := plans.Page{Limit: defaultPage, Cursor: q["cursor"]}
	if text, ok := q["limit"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > plans.MaxPage {
			return p, invalid("limit", "must be a whole number from 1 to 1000")
		}
		p.Limit = n
	}
	return p, nil
}
