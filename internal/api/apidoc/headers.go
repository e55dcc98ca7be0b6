package apidoc

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"quotad/client"
	"quotad/internal/api/problem"
)

// headers contains the response headers. The document defines each header once, and responses refer to it.
var headers = map[string]*huma.Param{
	"X-Request-Id":     header("The request's own X-Request-Id, if the request has a valid one. Otherwise quotad makes one. Logs and the audit name it.", textOf("req_5XQ4ZC7K2M3ABCDE_1")),
	"ETag":             header("The version of what the response shows. Send it in If-Match to replace exactly this version.", textOf(`"3"`)),
	"WWW-Authenticate": header("The authentication scheme, as RFC 6750 defines it.", textOf(`Bearer realm="quotad"`)),

	"Location": header("The path of the reservation that was made, or of the documentation.", textOf("/v1/reservations/4711")),
	"Link":     header("The link to the next page, with the relation next of RFC 8288. Absent on the last page.", textOf(`</v1/invoices.csv?cursor=x>; rel="next"`)),

	"X-Quotad-Reason": header("Why the request is refused, for gateways. Absent if the request is admitted.",
		oneOf("quota", "not-in-plan", "unknown-customer", "suspended", "ended", "outage")),
	"X-Quotad-Detail": header("A sentence for the customer on why the request is refused, in UTF-8. Absent if the request is admitted.", textOf("Your plan does not include this.")),

	"Retry-After":      header("The seconds to wait before the next attempt. Absent if no wait helps.", wholeOf(1)),
	"RateLimit":        header("What is left of each limit and when the limit resets, as the IETF draft 10 of RateLimit defines it.", textOf(`"hourly";r=4999;t=3600`)),
	"RateLimit-Policy": header("The limits that apply, as the IETF draft 10 of RateLimit defines it.", textOf(`"hourly";q=5000;w=3600`)),

	"X-RateLimit-Limit":     header("The size of one limit: of the one that refuses longest, else of the one with the least left.", wholeOf(5000)),
	"X-RateLimit-Remaining": header("The units that are left of that limit.", wholeOf(4999)),
	"X-RateLimit-Reset":     header("When that limit resets: seconds from now, Unix time or milliseconds, as `--rate-limit-reset` defines it.", wholeOf(3600)),
}

// quotaHeaders lists the headers of responses that show limits.
var quotaHeaders = []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

func header(doc string, s *huma.Schema) *huma.Param { return &huma.Param{Description: doc, Schema: s} }

func textOf(example string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Examples: []any{example}}
}

// oneOf returns the schema of a text and lists the text's values in this version.
func oneOf(words ...string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	extend(s, extensibleEnum, values(words))
	return s
}

func wholeOf(example int64) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Examples: []any{example}}
}

// describeHeaders adds to the responses of an operation the headers that they may have. versioned reports that
// the resource has an ETag.
func describeHeaders(op *huma.Operation, of *Operation, versioned bool) {
	for status, r := range op.Responses {
		r.Headers = map[string]*huma.Param{}
		add := func(names ...string) {
			for _, name := range names {
				r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
			}
		}
		add("X-Request-Id")
		code, _ := strconv.Atoi(status)
		switch {
		case code < http.StatusBadRequest && code != http.StatusNoContent && versioned:
			add("ETag")
		case code == http.StatusUnauthorized, code == http.StatusForbidden:
			add("WWW-Authenticate")
		}
		refused := of.Refusable && slices.Contains([]int{http.StatusOK, http.StatusForbidden, http.StatusTooManyRequests}, code)
		switch {
		case refused, code < http.StatusBadRequest && showsLimits(of.Response), code == http.StatusConflict && showsLimits(of.DoesNotFit):
			add(quotaHeaders...)
		}
		if refused || waits(of, code) {
			add("Retry-After")
		}
		add(of.Sends[code]...)
	}
}

// showsLimits reports whether a response body shows the state of limits. If so, the response headers show this
// state, too.
func showsLimits(body reflect.Type) bool {
	if body == nil {
		return false
	}
	f, ok := body.FieldByName("Limits")
	return ok && f.Type == reflect.TypeFor[[]client.LimitState]()
}

// waits reports whether problems with a status may have a Retry-After header.
func waits(of *Operation, status int) bool {
	return slices.ContainsFunc(of.allProblems(), func(k *problem.Kind) bool { return k.Status == status && k.Waits() })
}

// versioned returns a function that reports whether an operation's response has an ETag. An ETag is returned at
// every path that has a write with If-Match, and by every other GET of the same resource.
func versioned(list []Operation) func(*Operation) bool {
	paths, shown := map[string]bool{}, map[reflect.Type]bool{}
	for i := range list {
		if slices.Contains(list[i].Problems, problem.KindPrecondition) {
			paths[list[i].Pattern], shown[list[i].Response] = true, true
		}
	}
	return func(of *Operation) bool {
		return of.Response != nil && (paths[of.Pattern] || of.Method == http.MethodGet && shown[of.Response])
	}
}
