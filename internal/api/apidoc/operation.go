package apidoc

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotad/internal/api/problem"
)

// Operation is the documented part of a route.
type Operation struct {
	Method, Pattern string
	Access          Access
	Tag, ID         string
	Summary         string          // the description is in operations.md
	Params          []Param         // query parameters
	Headers         []Param         // request headers that are part of the request's meaning
	IDHeader        string          // header that may contain the request's id; empty if there is none
	KeyHeader       string          // header that may contain the key instead of Authorization; empty if there is none
	Request         reflect.Type    // nil if no body is read
	RequestMedia    string          // media type of a request with JSON lines
	Response        reflect.Type    // nil if there is no JSON body
	Preview         reflect.Type    // body of a 200 response that replaces Response if a parameter requests a preview
	Media           string          // media type of a body that is not JSON
	Status          []int           // success statuses
	Refusable       bool            // a refusal has the status in deny_status
	DoesNotFit      reflect.Type    // body of the problem does-not-fit; nil if the operation has no such problem
	Problems        []*problem.Kind // problems that not all operations of its kind have
	RefusedBy       []*problem.Kind // problems that deny_status also applies to

	Sends map[int][]string // the operation's own response headers, by status
}

// allProblems returns the operation's own problems and the problems that all operations of its kind have.
func (op *Operation) allProblems() []*problem.Kind {
	list := append([]*problem.Kind{}, op.Problems...)
	if op.Access != Anyone {
		list = append(list, problem.KindUnauthorized, problem.KindWrongScope, problem.KindTooManyFailures, problem.KindBusy, problem.KindUnavailable,
			problem.KindNoSession, problem.KindReadOnly)
	}
	if op.Method != http.MethodGet {
		list = append(list, problem.KindOutcomeUnknown, problem.KindTimeout) // the server waits for every body
	}
	if op.Request != nil {
		list = append(list, problem.KindNotJSON, problem.KindTooLarge, problem.KindMediaType, problem.KindInvalid)
	}
	return append(list, problem.KindInvalid, problem.KindInternal)
}

// Param is a parameter of the query.
type Param struct {
	Name, Type, Doc string
	Names           string // prefix of the parameter's names; name is for people then
	Required        bool
	Enum            []string
	Most            int64 // maximum of an integer
}

// Takes reports whether name is a name of the parameter.
func (p *Param) Takes(name string) bool {
	return p.Name == name || p.Names != "" && strings.HasPrefix(name, p.Names)
}

// IsFlag reports whether the parameter is true or false.
func (p *Param) IsFlag() bool {
	return p.Type == "boolean" || slices.Equal(p.Enum, []string{"true", "false"})
}

func (p *Param) schema() *huma.Schema {
	s := &huma.Schema{Type: p.Type}
	switch p.Type {
	case "date-time":
		s.Type, s.Format = huma.TypeString, p.Type
	case "integer":
		least, most := 1.0, float64(p.Most)
		s.Minimum, s.Maximum = &least, &most
	}
	for _, value := range p.Enum {
		s.Enum = append(s.Enum, value)
	}
	return s
}

// Access is the set of key scopes that may call a route. The scope admin may call every route.
type Access int

// Access levels of routes.
const (
	Anyone     Access = iota // no key is required
	AdminOnly                // admin writes and key management
	Supporters               // work of people who help customers, such as overrides
	Backends                 // hits
	Readers                  // every GET of a customer, plan or meter, and metrics
	EveryScope               // reads of a customer's quota, usage and open reservations
)

func (a Access) doc() string { return "Scope of the key: " + either(a.scopes(), "`") + "." }

// Scopes returns the names of the scopes that may call a route, including admin.
func (a Access) Scopes() string {
	all := a.scopes()
	if a != AdminOnly {
		all = append(all, "admin")
	}
	return either(all, "")
}

// scopes returns the scopes that may call a route. It contains admin only if there is no other scope.
func (a Access) scopes() []string {
	switch a {
	case Backends:
		return []string{"backend"}
	case Supporters:
		return []string{"support"}
	case Readers:
		return []string{"read", "support"}
	case EveryScope:
		return []string{"backend", "read", "support"}
	}
	return []string{"admin"}
}

// either returns a text such as "a, b or c" with each word in quotes.
func either(words []string, quote string) string {
	var all strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i == len(words)-1:
			all.WriteString(" or ")
		case i > 0:
			all.WriteString(", ")
		}
		all.WriteString(quote + word + quote)
	}
	return all.String()
}
