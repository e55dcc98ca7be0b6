package request

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/calendar"
	"quotad/internal/plans"
)

// Query contains the parameters of a request. Every parameter is known and occurs at most once.
type Query map[string]string

// ParseQuery parses the parameters of a request. It rejects parameters that the route does not have, so that a
// misspelled parameter is noticed.
func ParseQuery(r *http.Request, rt *apidoc.Operation) (Query, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	if len(r.URL.RawQuery) > 4<<10 {
		return nil, problem.Invalid("", "the query has more than 4096 bytes")
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.Invalid("", "the query is not well-formed")
	}
	q := make(Query, len(values))
	for name, given := range values {
		if !slices.ContainsFunc(rt.Params, func(p apidoc.Param) bool { return p.Takes(name) }) {
			return nil, problem.Invalid(name, "is not a parameter of this route"+insteadOfParam(rt, name))
		}
		if len(given) > 1 {
			return nil, problem.Invalid(name, "is there more than once")
		}
		if !Storable(name) || !Storable(given[0]) {
			return nil, problem.Invalid(name, wantStorable)
		}
		q[name] = given[0]
	}
	return q, nil
}

// insteadOfParam returns the end of the error about an unknown parameter. It names the parameter's proper place,
// or the parameter that was probably meant.
func insteadOfParam(rt *apidoc.Operation, name string) string {
	if slices.Contains(MembersOf(rt.Request), name) {
		return ": it belongs in the body"
	}
	var known []string
	for _, p := range rt.Params {
		known = append(known, p.Name)
	}
	return Instead(name, known)
}

// Attributes parses the values of attributes, attr.<name>=<value>.
func (q Query) Attributes() (map[string]string, error) {
	attributes := make(map[string]string)
	for name, value := range q {
		if attribute, ok := strings.CutPrefix(name, AttributeParam.Names); ok {
			attributes[attribute] = value
		}
	}
	if bad := CheckAttributes(attributes, strings.TrimSuffix(AttributeParam.Names, ".")); len(bad) > 0 {
		return nil, problem.InvalidFields(bad)
	}
	return attributes, nil
}

// Page parses limit and cursor. The list checks them.
func (q Query) Page() plans.Page {
	p := plans.Page{Cursor: q["cursor"]}
	if text, ok := q["limit"]; ok {
		var err error
		if p.Limit, err = strconv.Atoi(text); err != nil || p.Limit == 0 || strconv.Itoa(p.Limit) != text {
			p.Limit = -1 // out of range, so the list refuses it; 0 would mean the default
		}
	}
	return p
}

// CheckFlag checks an optional parameter that must be true or false.
func (q Query) CheckFlag(name string) error {
	if value, given := q[name]; given && value != "true" && value != "false" {
		return problem.Invalid(name, "must be true or false")
	}
	return nil
}

// Instant parses a parameter that is an RFC 3339 time, µs. In a query, a + without percent-encoding means a
// space, so the error for "…T00:00:00 02:00" explains the encoding.
func (q Query) Instant(name string, otherwise int64) (int64, error) {
	text, given := q[name]
	if !given {
		return otherwise, nil
	}
	at, err := calendar.ParseInstant(text)
	if err != nil {
		return 0, problem.Invalid(name, `must be an RFC 3339 time such as 2026-01-31T12:00:00Z; write + as %2B`)
	}
	return at, nil
}

// Between parses from and to, µs. A missing parameter is nil.
func (q Query) Between() (from, to *int64, err error) {
	for _, bound := range []struct {
		name string
		at   **int64
	}{{"from", &from}, {"to", &to}} {
		if _, given := q[bound.name]; given {
			at, err := q.Instant(bound.name, 0)
			if err != nil {
				return nil, nil, err
			}
			*bound.at = &at
		}
	}
	return from, to, nil
}

// AttributeParam describes the parameters that Attributes reads.
var AttributeParam = apidoc.Param{
	Name: "attr.NAME", Names: "attr.", Type: "string",
	Doc: "The value of the attribute NAME, such as `attr.ip=192.0.2.1`.\n\n- Limits per that attribute are shown by the buckets of this value.\n- When left out, they are shown by the buckets of the empty value.\n- A request may have at most 16.",
}

// Paging describes the parameters that Page reads.
var Paging = []apidoc.Param{
	{Name: "limit", Type: "integer", Doc: "How many items a page has at most. 100 when left out.", Most: plans.MaxPage},
	{Name: "cursor", Type: "string", Doc: "The `next_cursor` of the page before."},
}
