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

// ProblemOf is the problem that the API answered with, in words for people.
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

// NotThere reports whether the API knows no such thing.
func NotThere(err error) bool {
	problem, ok := ProblemOf(err)
	return ok && problem.Status == http.StatusNotFound
}

// askOnce is for what does not change while one page is drawn, or one stream is open. Parts of a page ask
// for it at the same time.
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

// Plan is a version of a plan.
func (v *Visit) Plan(key string, version int) (client.Plan, error) {
	return askOnce(v, key+" "+strconv.Itoa(version), func() (client.Plan, error) { return v.API.Version(v.Ctx(), key, version) })
}

// MeterNames are meters by key.
type MeterNames map[string]client.Meter

// Of is a meter. One that is not there any more has its key only.
func (m MeterNames) Of(key string) client.Meter {
	found := m[key]
	found.Key = key
	return found
}

// TitleOf is what people call a meter.
func TitleOf(m client.Meter) string {
	return cmp.Or(m.Name, m.Key, "Units")
}

// Meters are the names and units of all meters.
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

// Next is the address of the page after this one.
func (v *Visit) Next(cursor *string) string {
	if cursor == nil {
		return ""
	}
	query := v.R.URL.Query()
	query.Set("cursor", *cursor)
	query.Del("done")
	return v.R.URL.Path + "?" + query.Encode()
}

// pageSize is how many rows a list has on a page.
const pageSize = 50

// Query is what a page asks the API's list for: the named parameters of its own address.
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
