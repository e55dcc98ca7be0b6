package serve

import (
	"context"
	"net/http"
	"slices"

	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// An answer is what a typed route answers.
type answer struct {
	status int
	etag   string // unquoted; empty: none
	body   any    // nil: none (204)
}

// Params are what is known of a request before its body is read.
type Params struct {
	Query request.Query
	From  queue.SenderID // the id of its key
}

// A Call is one request to a typed route: allowed, and read.
type Call struct {
	Path
	Query request.Query
	From  queue.SenderID
	Body  []byte // as it was sent

	If             plans.Precondition // of a route that fails by KindPrecondition
	IdempotencyKey string             // the id in the header, of a route that has IDHeader; empty: none was sent

	r     *http.Request
	route *Route
}

// Ctx ends when the request has waited for too long, or its client has gone.
func (c *Call) Ctx() context.Context { return c.r.Context() }

// Flag is a parameter of the query that is true or false.
func (c *Call) Flag(name string) bool { return c.Query[name] == "true" }

// read reads what the route takes, the body into in. Errors are those of the first part that is
// wrong, in this order: path, id in the header, body, flags, precondition.
func (c *Call) read(in any) (err error) {
	rt := c.route
	for _, name := range rt.inPath {
		if err = c.readPath(name); err != nil {
			return err
		}
	}
	if rt.IDHeader != "" {
		if c.IdempotencyKey, err = request.IdempotencyKey(c.r.Header); err != nil {
			return err
		}
	}
	if rt.Request != nil {
		if err = request.DecodeBy(request.Members, c.Body, in); err != nil {
			return err
		}
	}
	if body, checks := in.(interface{ Check() model.FieldErrors }); checks {
		if bad := body.Check(); len(bad) > 0 {
			return problem.InvalidFields(bad)
		}
	}
	for i := range rt.Params {
		if rt.Params[i].IsFlag() {
			if err = c.Query.CheckFlag(rt.Params[i].Name); err != nil {
				return err
			}
		}
	}
	if slices.Contains(rt.Problems, problem.KindPrecondition) {
		c.If, err = request.Precondition(c.r.Header)
	}
	return err
}

// putStatus is the status of a write that made something, or changed it.
func putStatus(isNew bool) int {
	if isNew {
		return http.StatusCreated
	}
	return http.StatusOK
}
