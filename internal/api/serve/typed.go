package serve

import (
	"net/http"
	"reflect"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/plans"
)

// The functions below create typed routes. A typed route parses and checks the parts of the request that its
// pattern and its Route methods name. It then calls do and responds with the value that show returns for do's
// result. The types In and Out also appear in the OpenAPI document. The response has an ETag if do's result has
// a method ETag.

// Get returns a route that shows one resource.
func Get[From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call) (From, error), show func(From) Out) Route {
	return typed(http.MethodGet, access, pattern, id, summary, OK200, bodyless(do), show)
}

// List returns a route that shows a list in pages, with the parameters of request.Paging.
func List[From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call) (*plans.List[From], error), show func(From) Out) Route {
	rt := Get(access, pattern, id, summary, do, func(page *plans.List[From]) client.List[Out] { return listed(page.Items, page.Next, show) })
	rt.Params = request.Paging
	return rt
}

// ListAll returns a route that shows a short list as a single page.
func ListAll[From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call) ([]From, error), show func(From) Out) Route {
	return Get(access, pattern, id, summary, do, func(all []From) client.List[Out] { return listed(all, "", show) })
}

// Put returns a route that writes a resource. The status is 201 if the resource is new, and 200 otherwise.
func Put[In, From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call, In) (is From, isNew bool, err error), show func(From) Out) Route {
	return typed(http.MethodPut, access, pattern, id, summary, Put200or201, func(c *Call, in In) (From, int, error) {
		is, isNew, err := do(c, in)
		return is, putStatus(isNew), err
	}, show)
}

// Replace returns a route that writes a resource that exists at most once. The status is 200.
func Replace[In, From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call, In) (From, error), show func(From) Out) Route {
	return typed(http.MethodPut, access, pattern, id, summary, OK200, always(http.StatusOK, do), show)
}

// Delete returns a route that removes a resource. The status is 204.
func Delete(access apidoc.Access, pattern, id, summary string, do func(*Call) error) Route {
	return typed(http.MethodDelete, access, pattern, id, summary, Done204, func(c *Call, in nothing) (nothing, int, error) {
		return in, http.StatusNoContent, do(c)
	}, Same)
}

// DeleteShown is Delete with a do that may return the rest of the resource. The status is 200, or 204 if the
// result is nil.
func DeleteShown[From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call) (*From, error), show func(*From) Out) Route {
	return typed(http.MethodDelete, access, pattern, id, summary, []int{http.StatusOK, http.StatusNoContent}, func(c *Call, _ nothing) (*From, int, error) {
		is, err := do(c)
		if is == nil {
			return nil, http.StatusNoContent, err
		}
		return is, http.StatusOK, err
	}, show)
}

// Post returns a route that adds a resource under an id. The status is 201, or 200 if the id was sent before.
func Post[In, From, Out any](
	access apidoc.Access, pattern, id, summary string, do func(*Call, In) (is From, replayed bool, err error), show func(From) Out,
) Route {
	return typed(http.MethodPost, access, pattern, id, summary, Put200or201, func(c *Call, in In) (From, int, error) {
		is, replayed, err := do(c, in)
		return is, putStatus(!replayed), err
	}, show)
}

// Create returns a route that creates a resource. The status is 201.
func Create[In, From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call, In) (From, error), show func(From) Out) Route {
	return typed(http.MethodPost, access, pattern, id, summary, Created201, always(http.StatusCreated, do), show)
}

// Act returns a route that does an action on a resource as its body specifies. The status is 200.
func Act[In, From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call, In) (From, error), show func(From) Out) Route {
	return typed(http.MethodPost, access, pattern, id, summary, OK200, always(http.StatusOK, do), show)
}

// Trigger is Act without a body.
func Trigger[From, Out any](access apidoc.Access, pattern, id, summary string, do func(*Call) (From, error), show func(From) Out) Route {
	return typed(http.MethodPost, access, pattern, id, summary, OK200, bodyless(do), show)
}

// Same is the show function for results that are shown unchanged.
func Same[T any](is T) T { return is }

// nothing is the type of a missing body.
type nothing struct{}

func bodyless[From any](do func(*Call) (From, error)) func(*Call, nothing) (From, int, error) {
	return always(http.StatusOK, func(c *Call, _ nothing) (From, error) { return do(c) })
}

func always[In, From any](status int, do func(*Call, In) (From, error)) func(*Call, In) (From, int, error) {
	return func(c *Call, in In) (From, int, error) {
		is, err := do(c, in)
		return is, status, err
	}
}

// Shown converts each item of a page of the store with show.
func Shown[From, To any](page *plans.List[From], show func(From) To) *plans.List[To] {
	return &plans.List[To]{Items: listed(page.Items, "", show).Items, Next: page.Next}
}

func listed[From, To any](items []From, next string, show func(From) To) client.List[To] {
	body := client.List[To]{Items: make([]To, len(items)), NextCursor: respond.OrNull(next)}
	for i, item := range items {
		body.Items[i] = show(item)
	}
	return body
}

// typed returns a route. It panics if the pattern has a parameter that Path does not have.
func typed[In, From, Out any](
	method string, access apidoc.Access, pattern, id, summary string, status []int, do func(*Call, In) (From, int, error), show func(From) Out,
) Route {
	return Route{
		Operation: apidoc.Operation{
			Method: method, Access: access, Pattern: pattern, ID: id, Summary: summary, Request: typeOf[In](), Response: typeOf[Out](), Status: status,
		},
		inPath: namesIn(pattern),
		handle: func(c *Call) (a answer, err error) {
			in, _ := c.route.defaults.(In)
			if err = c.read(&in); err != nil {
				return a, err
			}
			is, status, err := do(c, in)
			if a.status = status; err != nil || status == http.StatusNoContent {
				return a, err
			}
			if of, has := any(is).(interface{ ETag() string }); has {
				a.etag = of.ETag()
			}
			a.body = show(is)
			return a, nil
		},
	}
}

// typeOf returns the type of a body for the OpenAPI document, or nil if there is no body.
func typeOf[T any]() reflect.Type {
	switch t := reflect.TypeFor[T](); {
	case t == reflect.TypeFor[nothing]():
		return nil
	case t.Kind() == reflect.Pointer:
		return t.Elem()
	default:
		return t
	}
}
