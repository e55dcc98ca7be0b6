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

// answer is the response of a typed route.
type answer struct {
	status int
	etag   string // unquoted; empty if there is none
	body   any    // nil if there is no body (204)
}

// Params contains the data of a request that is known before its body is read.
type Params struct {
	Query request.Query
	From  queue.SenderID // the id of the request's key
}

// Call is one authorized and parsed request to a typed route.
type Call struct {
	Path
	Query request.Query
	From  queue.SenderID
	Body  []byte // the original bytes

	If             plans.Precondition // for a route with KindPrecondition
	IdempotencyKey string             // the id in the header, for a route with an IDHeader; empty if no id was sent

	r     *http.Request
	route *Route
}

// Ctx returns a context that ends when the request has waited too long or its client has disconnected.
func (c *Call) Ctx() context.Context { return c.r.Context() }

// Flag returns the value of a query parameter that is true or false.
func (c *Call) Flag(name string) bool { return c.Query[name] == "true" }

// read parses all parts of the request and decodes the body into in. It returns the error of the first invalid
// part, in this order: path, id in the header, body, flags, precondition.
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

// putStatus returns the status of a write that created or changed a resource.
func putStatus(isNew bool) int {
	if isNew {
		return http.StatusCreated
	}
	return http.StatusOK
}
