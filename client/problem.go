package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
)

// Problem is the problem document with which the API answers a failed request.
type Problem struct {
	Type   string       `json:"type" doc:"A path of this server. The page there documents the problem."`
	Title  string       `json:"title" doc:"The title of the problem type, for people. It is the same for all problems of the type."`
	Status int          `json:"status" doc:"The HTTP status."`
	Detail string       `json:"detail" doc:"An explanation of this one problem and of what to do, for people."`
	Errors []FieldError `json:"errors,omitempty" doc:"The wrong fields of the request. Present only if fields or parameters are wrong."`
}

// FieldError describes a fault in one field of a request.
type FieldError struct {
	Field  string `json:"field" doc:"A path such as limits[0].window, or a parameter's name."`
	Detail string `json:"detail" doc:"What is wrong with the field, for people."`
}

// Error implements error.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d %s: %s", p.Status, cmp.Or(p.Type, p.Title), p.Detail)
}

// problemOf reads a problem document. A proxy between the client and quotad may have sent an answer that is no
// problem document.
func problemOf(status int, raw []byte) *Problem {
	p := &Problem{}
	if err := json.Unmarshal(raw, p); err != nil {
		p = &Problem{}
	}
	p.Status, p.Title = status, cmp.Or(p.Title, http.StatusText(status))
	return p
}
