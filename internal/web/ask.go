package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
)

// problemAnswer is a problem document that the API answered with.
type problemAnswer struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"errors"`
}

func (p *problemAnswer) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Type, p.Detail) }

// ask gets what a path of the API answers. The error is a *problemAnswer where it answers one.
func ask[T any](v *visit, path string) (body T, err error) {
	_, raw, err := v.get(path)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	return body, err
}

// askOnce is ask for what does not change while one page is drawn, or one stream is open: versions of
// plans, and the names of meters. Parts of a page ask for them at the same time.
func askOnce[T any](v *visit, path string) (body T, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if kept, ok := v.kept[path].(T); ok {
		return kept, nil
	}
	if body, err = ask[T](v, path); err == nil {
		if v.kept == nil {
			v.kept = map[string]any{}
		}
		v.kept[path] = body
	}
	return body, err
}

// get is the answer to a GET, not decoded.
func (v *visit) get(path string) (http.Header, []byte, error) {
	return v.do(http.MethodGet, path, nil, nil)
}

// do asks the API. body is JSON, or nil; header may be nil.
func (v *visit) do(method, path string, body []byte, header http.Header) (http.Header, []byte, error) {
	status, got, raw := v.site.options.Ask(v.ctx(), v.as, method, path, body, header)
	if status < http.StatusBadRequest {
		return got, raw, nil
	}
	problem := &problemAnswer{Status: status}
	if err := json.Unmarshal(raw, problem); err != nil {
		return nil, nil, fmt.Errorf("%s %s answered %d: %w", method, path, status, err)
	}
	problem.Detail = plainly(problem.Detail)
	for i := range problem.Errors {
		problem.Errors[i].Detail = plainly(problem.Errors[i].Detail)
	}
	return nil, nil, problem
}

// segment is a name as a part of a path.
func segment(name string) string { return url.PathEscape(name) }

// versionPath is where the API has a version of a plan.
func versionPath(plan string, version int) string {
	return "/v1/plans/" + segment(plan) + "/versions/" + strconv.Itoa(version)
}
