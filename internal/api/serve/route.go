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

// A Route is one operation, and how it is served.
type Route struct {
	apidoc.Operation

	// Raw writes the answer itself and returns the status; nil: the route is typed. The hit routes
	// are raw, and routes whose answer is not JSON.
	Raw func(http.ResponseWriter, *http.Request, Params) int

	// Of a typed route.
	handle   func(*Call) (answer, error)
	inPath   []string      // the names of its parameters in the path
	defaults any           // what the members of the body are that are left out; nil: the zero value
	Wait     time.Duration // how long an answer may take; 0: the server's deadline
	Reads    bool          // it changes nothing, though it is no GET
}

// Tagged is routes with their tag in the documentation.
func Tagged(tag string, list ...Route) []Route {
	for i := range list {
		list[i].Tag = tag
	}
	return list
}

// Fails is the route with problems that it answers, beside those of all routes of its sort. A route
// that fails by KindPrecondition reads If-Match and If-None-Match.
func (rt Route) Fails(kinds ...*problem.Kind) Route {
	rt.Problems = append(slices.Clip(rt.Problems), kinds...)
	return rt
}

// Takes is the route with parameters of the query, before those that it has.
func (rt Route) Takes(params ...apidoc.Param) Route {
	rt.Params = slices.Concat(params, rt.Params)
	return rt
}

// Defaults is the route with what a body is of which all members are left out. It panics if in is not
// of the type of the body.
func (rt Route) Defaults(in any) Route {
	if reflect.TypeOf(in) != rt.Request {
		panic(rt.ID + " takes no " + reflect.TypeOf(in).Name())
	}
	rt.defaults = in
	return rt
}

// Keyed is the route with an id that may be in the header.
func (rt Route) Keyed() Route {
	rt.IDHeader = request.IdempotencyHeader
	return rt
}

// Reading is the route as one that changes nothing, though it is no GET.
func (rt Route) Reading() Route {
	rt.Reads = true
	return rt
}

// Described is the route with other types of the request and the answer in the documentation, which
// have the same members. A nil leaves a type as it is.
func (rt Route) Described(in, out any) Route {
	if in != nil {
		rt.Request = reflect.TypeOf(in)
	}
	rt.Response = reflect.TypeOf(out)
	return rt
}

// allows reports whether a key of that scope may call the route.
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

// Audited reports whether what the route does is audited: all that admins and support write.
func (rt *Route) Audited() bool {
	return rt.Method != http.MethodGet && !rt.Reads && (rt.Access == apidoc.AdminOnly || rt.Access == apidoc.Supporters)
}

// Operations are the parts of the routes that the documentation is made from.
func Operations(list []Route) []apidoc.Operation {
	described := make([]apidoc.Operation, len(list))
	for i := range list {
		described[i] = list[i].Operation
	}
	return described
}

// The statuses of answers.
var (
	OK200       = []int{http.StatusOK}
	Created201  = []int{http.StatusCreated}
	Put200or201 = []int{http.StatusOK, http.StatusCreated}
	Done204     = []int{http.StatusNoContent}
)

// Preconditions are the problems of routes that read If-Match.
var Preconditions = []*problem.Kind{problem.KindPrecondition, problem.KindPreconditionRequired}
