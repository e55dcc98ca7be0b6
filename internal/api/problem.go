package api

import (
	"net/http"
	"strconv"
	"strings"

	"quotad/internal/plans"
	"quotad/internal/quota/model"
)

// A kind is one kind of problem: its type, status and title never change, so clients
// may branch on them. Its documentation is served at /problems/{name}.
type kind struct {
	name   string
	status int
	title  string
	doc    string // what happened and what to do about it
	retry  bool   // sent with Retry-After: 1
}

// typeURI is an absolute path, resolved against the server that answered.
func (k *kind) typeURI() string {
	if k == kindQuotaExceeded {
		return quotaExceeded
	}
	return "/problems/" + k.name
}

// problemBody is a problem document, for its schema; appendProblem writes it.
type problemBody struct {
	Type   string       `json:"type" doc:"A path of this server with the documentation of the problem."`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Errors []fieldError `json:"errors,omitempty"`
}

type fieldError struct {
	Field  string `json:"field" doc:"A path such as limits[0].window, or a parameter's name."`
	Detail string `json:"detail"`
}

// A fault is an error of the request itself, found here rather than below.
type fault struct {
	kind   *kind
	detail string
	fields model.FieldErrors
	// For headers that some kinds have.
	bearerError string // 401 and 403: the error code of RFC 6750, section 3.1; may be empty
	allow       string // 405: the methods that the path has
}

func (f *fault) Error() string { return f.detail }

// invalid is a 422 about one field, named by its path, such as limits[0].window; empty: the body.
func invalid(field, detail string) *fault {
	return invalidFields(model.FieldErrors{{Field: field, Detail: detail}})
}

// What one answer says at most, so that a small request has no large answer: errors, and
// those that the detail says in words.
const (
	maxErrors   = 100
	maxInDetail = 5
)

// invalidFields is a 422 about some fields. What it repeats of the request is cut.
func invalidFields(all model.FieldErrors) *fault {
	f := &fault{kind: kindInvalid}
	var parts []string
	for _, e := range all[:min(len(all), maxErrors)] {
		e.Field = plans.Shorten(e.Field)
		f.fields = append(f.fields, e)
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
	f.detail = strings.Join(parts, "; ")
	return f
}

// appendProblem appends the problem document of RFC 9457, with so many errors at most.
func appendProblem(b []byte, f *fault, most int) []byte {
	b = append(b, `{"type":`...)
	b = appendString(b, f.kind.typeURI())
	b = append(b, `,"title":`...)
	b = appendString(b, f.kind.title)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(f.kind.status), 10)
	b = append(b, `,"detail":`...)
	b = appendString(b, f.detail)
	if len(f.fields) > 0 {
		b = append(b, `,"errors":[`...)
		for i, e := range f.fields[:min(len(f.fields), most)] {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"field":`...)
			b = appendString(b, e.Field)
			b = append(b, `,"detail":`...)
			b = appendString(b, e.Detail)
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// writeProblem answers with a problem document and returns its status.
func writeProblem(w http.ResponseWriter, f *fault) int {
	h := w.Header()
	switch {
	case f.kind == kindUnauthorized, f.kind == kindWrongScope:
		challenge := `Bearer realm="quotad"`
		if f.bearerError != "" {
			challenge += `, error="` + f.bearerError + `"`
		}
		h.Set("WWW-Authenticate", challenge)
	case f.allow != "":
		h.Set("Allow", f.allow)
	case f.kind.retry:
		h.Set("Retry-After", "1")
	}
	buf := getBuffer()
	defer putBuffer(buf)
	buf.b = appendProblem(buf.b, f, maxErrors)
	return writeBody(w, f.kind.status, problemJSON, buf.b)
}
