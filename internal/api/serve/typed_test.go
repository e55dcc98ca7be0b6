package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/go-chi/chi/v5"

	"quotad/client"
	"quotad/internal/api/apidoc"
	"quotad/internal/api/problem"
	"quotad/internal/api/request"
	"quotad/internal/quota/model"
)

type capRequest client.CapRequest

func (in *capRequest) Check() (bad model.FieldErrors) {
	if in.AmountMinor < 0 {
		bad = append(bad, model.FieldError{Field: "amount_minor", Detail: "must be 0 or more"})
	}
	return bad
}

type tagged struct{ client.Cap }

func (tagged) ETag() string { return "7" }

func putCap(c *Call, in capRequest) (tagged, bool, error) {
	return tagged{client.Cap{Meter: c.Key + c.Meter, AmountMinor: in.AmountMinor}}, c.Flag("new"), nil
}

func capRoute() Route {
	return Put(apidoc.AdminOnly, "/v1/customers/{key}/caps/{meter}", "putCap", "Cap", putCap, func(t tagged) client.Cap { return t.Cap }).
		Defaults(capRequest{AmountMinor: -1}).Takes(apidoc.Param{Name: "new", Type: "boolean"}).Keyed().Fails(Preconditions...)
}

// TestTypedRouteReadsInOrder: of several faults the first part's is answered, and a request without one is
// answered as the functions of its route say.
func TestTypedRouteReadsInOrder(t *testing.T) {
	t.Parallel()
	rt := capRoute()
	if rt.Request != reflect.TypeFor[capRequest]() || rt.Response != reflect.TypeFor[client.Cap]() || rt.Method != http.MethodPut || len(rt.Status) != 2 {
		t.Errorf("%s %v: %v, %v", rt.Method, rt.Status, rt.Request, rt.Response)
	}
	params := chi.NewRouteContext()
	params.URLParams.Add("key", "a/b")
	params.URLParams.Add("meter", "a b")
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), chi.RouteCtxKey, params), http.MethodPut, "/", nil)
	r.Header[request.IdempotencyHeader] = []string{""}
	r.Header["If-Match"] = []string{"unquoted"}
	c := &Call{r: r, route: &rt, Query: request.Query{"new": "yes"}, Body: []byte(`{"amount_minor":"1"}`)}
	for _, fault := range []struct {
		field string
		mend  func()
	}{
		{"key", func() { params.URLParams.Values[0] = "acme" }},
		{"meter", func() { params.URLParams.Values[1] = "seats" }},
		{request.IdempotencyHeader, func() { r.Header[request.IdempotencyHeader][0] = "once" }},
		{"amount_minor", func() { c.Body = []byte(`{}`) }},
		{"amount_minor", func() { c.Body = []byte(`{"amount_minor":5}`) }},
		{"new", func() { c.Query["new"] = "true" }},
		{"If-Match", func() { r.Header["If-Match"][0] = `"6"` }},
	} {
		_, err := rt.handle(c)
		if f, ok := errors.AsType[*problem.Fault](err); !ok || len(f.Fields) != 1 || f.Fields[0].Field != fault.field {
			t.Fatalf("%v, should be of %s", err, fault.field)
		}
		fault.mend()
	}
	a, err := rt.handle(c)
	if want := (client.Cap{Meter: "acmeseats", AmountMinor: 5}); err != nil || a.status != http.StatusCreated || a.etag != "7" || a.body != want {
		t.Errorf("%+v %v", a, err)
	}
	if c.IdempotencyKey != "once" || !c.If.Given || len(c.If.ETags) != 1 {
		t.Errorf("%q %+v", c.IdempotencyKey, c.If)
	}
}

// TestRoutesThatCannotBe: a mistake in an entry is noticed when the entry is made.
func TestRoutesThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"an unknown parameter of the path": func() { Delete(apidoc.AdminOnly, "/v1/meters/{unit}", "x", "X", func(*Call) error { return nil }) },
		"defaults of another type":         func() { capRoute().Defaults(client.CapRequest{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			build()
		}()
	}
}
