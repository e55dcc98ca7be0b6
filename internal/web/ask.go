package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"quotad/client"
)

// problemOf is the problem that the API answered with, in words for people.
func problemOf(err error) (*client.Problem, bool) {
	told, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return nil, false
	}
	p := *told
	p.Detail, p.Errors = plainly(p.Detail), slices.Clone(p.Errors)
	for i := range p.Errors {
		p.Errors[i].Detail = plainly(p.Errors[i].Detail)
	}
	return &p, true
}

func notThere(err error) bool {
	problem, ok := problemOf(err)
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

// plan is a version of a plan.
func (v *Visit) plan(key string, version int) (client.Plan, error) {
	return askOnce(v, key+" "+strconv.Itoa(version), func() (client.Plan, error) { return v.api.Version(v.ctx(), key, version) })
}

// meterNames are meters by key.
type meterNames map[string]client.Meter

// of is a meter. One that is not there any more has its key only.
func (m meterNames) of(key string) client.Meter {
	found := m[key]
	found.Key = key
	return found
}

// titleOf is what people call a meter.
func titleOf(m client.Meter) string {
	return cmp.Or(m.Name, m.Key, "Units")
}

// meters are the names and units of all meters.
func (v *Visit) meters() (meterNames, error) {
	return askOnce(v, "meters", func() (meterNames, error) {
		all, query := meterNames{}, url.Values{"limit": {"1000"}}
		for {
			page, err := v.api.Meters(v.ctx(), query)
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

// segment is a name as a part of a path.
func segment(name string) string { return url.PathEscape(name) }

// next is the address of the page after this one.
func (v *Visit) next(cursor *string) string {
	if cursor == nil {
		return ""
	}
	query := v.r.URL.Query()
	query.Set("cursor", *cursor)
	query.Del("done")
	return v.r.URL.Path + "?" + query.Encode()
}

// pageSize is how many rows a list has on a page.
const pageSize = 50

// query is what a page asks the API's list for: the named parameters of its own address.
func (v *Visit) query(names ...string) url.Values {
	asked, all := v.r.URL.Query(), url.Values{}
	all.Set("limit", strconv.Itoa(pageSize))
	for _, name := range append(names, "cursor") {
		if value := asked.Get(name); value != "" {
			all.Set(name, value)
		}
	}
	return all
}
