package api

import (
	"net/http"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/plans"
)

// A route is one operation, and how it is served.
type route struct {
	apidoc.Operation

	// Exactly one of these two is set. handle returns its answer as a value. raw writes the
	// answer itself and returns the status; the hit routes are raw, and routes whose answer is
	// not JSON.
	handle func(*call) (answer, error)
	raw    func(http.ResponseWriter, *http.Request, params) int

	// wait is how long an answer of handle may take; 0: the server's deadline.
	wait  time.Duration
	reads bool // it changes nothing, though it is no GET
}

// allows reports whether a key of that scope may call the route.
func (rt *route) allows(scope plans.Scope) bool {
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

// audited reports whether what the route does is audited: all that admins and support write.
func (rt *route) audited() bool {
	return rt.Method != http.MethodGet && !rt.reads && (rt.Access == apidoc.AdminOnly || rt.Access == apidoc.Supporters)
}

// operations are the parts of the routes that the documentation is made from.
func operations(list []route) []apidoc.Operation {
	described := make([]apidoc.Operation, len(list))
	for i := range list {
		described[i] = list[i].Operation
	}
	return described
}

var (
	ok200       = []int{http.StatusOK}
	created201  = []int{http.StatusCreated}
	put200or201 = []int{http.StatusOK, http.StatusCreated}
	done204     = []int{http.StatusNoContent}
)

// preconditions are the problems of routes that read If-Match.
var preconditions = []*problem.Kind{problem.KindPrecondition, problem.KindPreconditionRequired}
