package problem

import (
	"net/http"
	"strconv"
	"strings"

	"quotad/internal/api/respond"
	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// A Kind is one kind of problem: its type, status and title never change, so clients
// may branch on them. Its documentation is served at /problems/{name}.
type Kind struct {
	Name   string
	Status int
	Title  string
	Doc    string // what happened and what to do about it
	retry  bool   // sent with Retry-After: 1
}

// TypeURI is an absolute path, resolved against the server that answered.
func (k *Kind) TypeURI() string {
	if k == KindQuotaExceeded {
		return respond.QuotaExceeded
	}
	return "/problems/" + k.Name
}

// Waits reports whether problems of the kind may have the header Retry-After.
func (k *Kind) Waits() bool { return k.retry || k == KindTooManyFailures }

// A Fault is an error of the request itself, found here rather than below.
type Fault struct {
	Kind   *Kind
	Detail string
	Fields model.FieldErrors
	// For headers that some kinds have.
	BearerError string // 401 and 403: the error code of RFC 6750, section 3.1; may be empty
	Allow       string // 405: the methods that the path has
	RetryAfter  int    // seconds, of a kind without a wait of its own; 0: none
}

func (f *Fault) Error() string { return f.Detail }

// Invalid is a 422 about one field, named by its path, such as limits[0].window; empty: the body.
func Invalid(field, detail string) *Fault {
	return InvalidFields(model.FieldErrors{{Field: field, Detail: detail}})
}

// What one answer says at most, so that a small request has no large answer: errors, and
// those that the detail says in words.
const (
	MaxErrors   = 100
	maxInDetail = 5
)

// InvalidFields is a 422 about some fields. What it repeats of the request is cut.
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
		if e.Field != "" { // else it is about the whole body
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

// Append appends the problem document of RFC 9457, with so many errors at most.
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

// Write answers with a problem document and returns its status.
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
