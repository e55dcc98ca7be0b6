package serve

import (
	"net/http"
	"reflect"
	"slices"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/plans"
)

// Route is one operation with the functions that serve it.
type Route struct {
	apidoc.Operation

	// Raw writes the response itself and returns the status. If Raw is nil, the route is typed. The routes of
	// hits are raw, and so are routes whose response is not JSON.
	Raw func(http.ResponseWriter, *http.Request, Params) int

	// The following fields belong to typed routes.
	handle   func(*Call) (answer, error)
	inPath   []string      // names of the path parameters
	defaults any           // values of missing members of the body; nil means the zero value
	Wait     time.Duration // maximum time for a response; 0 means the server's deadline
	Reads    bool          // the route changes nothing although its method is not GET
}

// Tagged returns routes with their tag in the documentation.
func Tagged(tag string, list ...Route) []Route {
	for i := range list {
		list[i].Tag = tag
	}
	return list
}

// Fails returns the route with additional problems, beside those of all routes of its kind. A route with
// KindPrecondition reads If-Match and If-None-Match.
func (rt Route) Fails(kinds ...*problem.Kind) Route {
	rt.Problems = append(slices.Clip(rt.Problems), kinds...)
	return rt
}

// Takes returns the route with additional query parameters, which precede its other parameters.
func (rt Route) Takes(params ...apidoc.Param) Route {
	rt.Params = slices.Concat(params, rt.Params)
	return rt
}

// Defaults returns the route with the default values of its body's members. It panics if in does not have the
// type of the body.
func (rt Route) Defaults(in any) Route {
	if reflect.TypeOf(in) != rt.Request {
		panic(rt.ID + " takes no " + reflect.TypeOf(in).Name())
	}
	rt.defaults = in
	return rt
}

// Keyed returns the route with an id that may be in the header.
func (rt Route) Keyed() Route {
	rt.IDHeader = request.IdempotencyHeader
	return rt
}

// Reading returns the route, marked as a route that changes nothing although its method is not GET.
func (rt Route) Reading() Route {
	rt.Reads = true
	return rt
}

// Described returns the route with other request and response types in the documentation. These types have the
// same members. A nil leaves a type unchanged.
func (rt Route) Described(in, out any) Route {
	if in != nil {
		rt.Request = reflect.TypeOf(in)
	}
	rt.Response = reflect.TypeOf(out)
	return rt
}

// allows reports whether a key with the scope may call the route.
func (rt *Route) allows(scope plans.Scope) bool {
	switch scope {
	case plans.ScopeAdmin:
		return true
	case plans.ScopeBackend:
		return rt.Access == apidoc.Backends || rt.Access == apidoc.EveryScope
	case plans.ScopeRead:
		return rt.Access == apidoc.Readers || rt.Access == apidoc.EveryScope
	case plans.ScopeSupport:
		return rt.Access == apidoc.Readers || rt.Access == apidoc.EveryScope || rt.Access == apidoc.Supporters
	}
	return false
}

// Audited reports whether requests of the route are audited, as all writes of admins and support are.
func (rt *Route) Audited() bool {
	return rt.Method != http.MethodGet && !rt.Reads && (rt.Access == apidoc.AdminOnly || rt.Access == apidoc.Supporters)
}

// Operations returns the parts of the routes from which the documentation is generated.
func Operations(list []Route) []apidoc.Operation {
	described := make([]apidoc.Operation, len(list))
	for i := range list {
		described[i] = list[i].Operation
	}
	return described
}

// The statuses of responses.
var (
	OK200       = []int{http.StatusOK}
	Created201  = []int{http.StatusCreated}
	Put200or201 = []int{http.StatusOK, http.StatusCreated}
	Done204     = []int{http.StatusNoContent}
)

// Preconditions lists the problems of routes that read If-Match.
var Preconditions = []*problem.Kind{problem.KindPrecondition, problem.KindPreconditionRequired}
