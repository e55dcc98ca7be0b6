package request

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"quotad/internal/api/problem"
	"quotad/internal/plans"
)

// PathValue returns a part of the path after decoding its percent-encoding exactly once. If the URL has a
// RawPath (as with %2F), chi matches against it and returns encoded parts. Otherwise net/url has already decoded
// the parts, and a second decoding would turn the key "a%41" into "aA".
func PathValue(r *http.Request, name string) (string, error) {
	part := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return part, nil
	}
	value, err := url.PathUnescape(part)
	if err != nil {
		return "", problem.Invalid(name, "is not well percent-encoded")
	}
	return value, nil
}

// CustomerInPath returns the customer's key in the path.
func CustomerInPath(r *http.Request) (string, error) {
	key, err := PathValue(r, "key")
	if err == nil && !plans.ValidCustomerKey(key) {
		err = problem.Invalid("key", plans.CustomerKeyRule)
	}
	return key, err
}

// NameInPath returns the key of a meter or plan, or the id of a key, in the path.
func NameInPath(r *http.Request, param string) (string, error) {
	key, err := PathValue(r, param)
	if err == nil && !plans.ValidKey(key) {
		err = problem.Invalid(param, plans.KeyRule)
	}
	return key, err
}
