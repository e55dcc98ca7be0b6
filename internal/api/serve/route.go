package serve

import (
	"net/http"
	"time"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/plans"
)

// A Route is one operation, and how it is served.
type Route struct {
	apidoc.Operation

	// Exactly one of these two is set. Handle returns its answer as a value. Raw writes the
	// answer itself and returns the status; the hit routes are raw, and routes whose answer is
	// not JSON.
	Handle func(*Call) (Answer, error)
	Raw    func(http.ResponseWriter, *http.Request, Params) int

	// Wait is how long an answer of Handle may take; 0: the server's deadline.
	Wait  time.Duration
	Reads bool // it changes nothing, though it is no GET
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
