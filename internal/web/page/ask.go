package page

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"quotad/client"
	"quotad/internal/web/words"
)

// ProblemOf returns the problem that the API returned, with its texts in plain words for people. It reports
// false if err is no problem of the API.
func ProblemOf(err error) (*client.Problem, bool) {
	told, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return nil, false
	}
	p := *told
	p.Detail, p.Errors = words.Plainly(p.Detail), slices.Clone(p.Errors)
	for i := range p.Errors {
		p.Errors[i].Detail = words.Plainly(p.Errors[i].Detail)
	}
	return &p, true
}

// NotThere reports whether the API returned 404.
func NotThere(err error) bool {
	problem, ok := ProblemOf(err)
	return ok && problem.Status == http.StatusNotFound
}

// askOnce queries a value that does not change while a page is drawn or a stream is open, and caches the value
// in the visit. It is safe for concurrent use, because parts of a page query the value at the same time.
func askOnce[T any](v *Visit, name string, ask func() (T, error)) (found T, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kept, ok := v.kept[name].(T); ok {
		return kept, nil
	}
	if found, err = ask(); err == nil {
		if v.kept == nil {
			v.kept = map[string]any{}
		}
		v.kept[name] = found
	}
	return found, err
}

// Plan returns a version of a plan.
func (v *Visit) Plan(key string, version int) (client.Plan, error) {
	return askOnce(v, key+" "+strconv.Itoa(version), func() (client.Plan, error) { return v.API.Version(v.Ctx(), key, version) })
}

// MeterNames maps the keys of meters to the meters.
type MeterNames map[string]client.Meter

// Of returns the meter with the key. The result for a missing meter contains only the key.
func (m MeterNames) Of(key string) client.Meter {
	found := m[key]
	found.Key = key
	return found
}

// TitleOf returns a meter's name for people.
func TitleOf(m client.Meter) string {
	return cmp.Or(m.Name, m.Key, "Units")
}

// Meters returns all meters with their names and units.
func (v *Visit) Meters() (MeterNames, error) {
	return askOnce(v, "meters", func() (MeterNames, error) {
		all, query := MeterNames{}, url.Values{"limit": {"1000"}}
		for {
			page, err := v.API.Meters(v.Ctx(), query)
			if err != nil {
				return nil, err
			}
			for _, m := range page.Items {
				all[m.Key] = m
			}
			if page.NextCursor == nil {
				return all, nil
			}
			query.Set("cursor", *page.NextCursor)
		}
	})
}

// Next returns the address of the next page of a list, or an empty string if cursor is nil.
func (v *Visit) Next(cursor *string) string {
	if cursor == nil {
		return ""
	}
	query := v.R.URL.Query()
	query.Set("cursor", *cursor)
	query.Del("done")
	return v.R.URL.Path + "?" + query.Encode()
}

// pageSize is the number of rows on one page of a list.
const pageSize = 50

// Query returns the query of an API list: the page size, the cursor, and the named parameters from the page's
// own address.
func (v *Visit) Query(names ...string) url.Values {
	asked, all := v.R.URL.Query(), url.Values{}
	all.Set("limit", strconv.Itoa(pageSize))
	for _, name := range append(names, "cursor") {
		if value := asked.Get(name); value != "" {
			all.Set(name, value)
		}
	}
	return all
}
