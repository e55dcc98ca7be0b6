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

// ProblemOf returns the problem in the API's response, in words for people.
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

// NotThere reports whether the API returned "not found".
func NotThere(err error) bool {
	problem, ok := ProblemOf(err)
	return ok && problem.Status == http.StatusNotFound
}

// askOnce requests data once while a page is drawn or a stream is open, because the data does not change
// meanwhile. Concurrent parts of a page share the request.
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

// MeterNames contains meters by key.
type MeterNames map[string]client.Meter

// Of returns a meter. For a meter that no longer exists, the result has only the key.
func (m MeterNames) Of(key string) client.Meter {
	found := m[key]
	found.Key = key
	return found
}

// TitleOf returns the name of a meter for people.
func TitleOf(m client.Meter) string {
	return cmp.Or(m.Name, m.Key, "Units")
}

// Meters returns the names and units of all meters.
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

// Next returns the address of the next page of a list.
func (v *Visit) Next(cursor *string) string {
	if cursor == nil {
		return ""
	}
	query := v.R.URL.Query()
	query.Set("cursor", *cursor)
	query.Del("done")
	return v.R.URL.Path + "?" + query.Encode()
}

// pageSize is the number of rows on a page of a list.
const pageSize = 50

// Query returns the named parameters of the page's address for a request to a list of the API.
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
