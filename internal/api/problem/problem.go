package problem

import (
	"net/http"
	"strconv"
	"strings"

	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// Kind is one kind of problem. Its type, status and title never change, so clients may branch on them. Its
// documentation is served at /problems/{name}.
type Kind struct {
	Name   string
	Status int
	Title  string
	Doc    string // what happened, and what the client can do
	retry  bool   // sent with Retry-After: 1
}

// TypeURI returns an absolute path, which clients resolve against the server that responded.
func (k *Kind) TypeURI() string {
	if k == KindQuotaExceeded {
		return respond.QuotaExceeded
	}
	return "/problems/" + k.Name
}

// Waits reports whether problems of the kind may have a Retry-After header.
func (k *Kind) Waits() bool { return k.retry || k == KindTooManyFailures }

// Fault is an error that the API itself finds in a request.
type Fault struct {
	Kind   *Kind
	Detail string
	Fields model.FieldErrors
	// The following fields set headers that only some kinds have.
	BearerError string // 401 and 403: the error code of RFC 6750, section 3.1; may be empty
	Allow       string // 405: the methods that the path has
	RetryAfter  int    // seconds, of a kind without a wait of its own; 0: none
}

func (f *Fault) Error() string { return f.Detail }

// Invalid returns a 422 about one field, which is identified by its path, such as limits[0].window. An empty
// field means the body.
func Invalid(field, detail string) *Fault {
	return InvalidFields(model.FieldErrors{{Field: field, Detail: detail}})
}

// The maximum number of errors in a response, and of errors in its detail text. They prevent a large response to
// a small request.
const (
	MaxErrors   = 100
	maxInDetail = 5
)

// InvalidFields returns a 422 about several fields. Values that are repeated from the request are shortened.
func InvalidFields(all model.FieldErrors) *Fault {
	f := &Fault{Kind: KindInvalid}
	var parts []string
	for _, e := range all[:min(len(all), MaxErrors)] {
		e.Field = plans.Shorten(e.Field)
		f.Fields = append(f.Fields, e)
		if len(parts) == maxInDetail {
			continue
		}
		part := e.Detail
		if e.Field != "" { // an empty field means the whole body
			part = e.Field + ": " + part
		}
		parts = append(parts, part)
	}
	if more := len(all) - len(parts); more > 0 {
		parts = append(parts, strconv.Itoa(more)+" more")
	}
	f.Detail = strings.Join(parts, "; ")
	return f
}

// Append appends the problem document of RFC 9457 with at most most errors.
func Append(b []byte, f *Fault, most int) []byte {
	b = append(b, `{"type":`...)
	b = respond.AppendString(b, f.Kind.TypeURI())
	b = append(b, `,"title":`...)
	b = respond.AppendString(b, f.Kind.Title)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(f.Kind.Status), 10)
	b = append(b, `,"detail":`...)
	b = respond.AppendString(b, f.Detail)
	if len(f.Fields) > 0 {
		b = append(b, `,"errors":[`...)
		for i, e := range f.Fields[:min(len(f.Fields), most)] {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"field":`...)
			b = respond.AppendString(b, e.Field)
			b = append(b, `,"detail":`...)
			b = respond.AppendString(b, e.Detail)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// Write writes a problem document as the response and returns its status.
func Write(w http.ResponseWriter, f *Fault) int {
	h := w.Header()
	switch {
	case f.Kind == KindUnauthorized, f.Kind == KindWrongScope:
		challenge := `Bearer realm="quotad"`
		if f.BearerError != "" {
			challenge += `, error="` + f.BearerError + `"`
		}
		h.Set("WWW-Authenticate", challenge)
	case f.Allow != "":
		h.Set("Allow", f.Allow)
	case f.Kind.retry:
		h.Set("Retry-After", "1")
	case f.RetryAfter > 0:
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	buf := respond.GetBuffer()
	defer respond.PutBuffer(buf)
	buf.B = Append(buf.B, f, MaxErrors)
	return respond.Write(w, f.Kind.Status, respond.ProblemJSON, buf.B)
}
