package apidoc

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotad/internal/api/problem"
)

// An Operation is what clients are told of a route.
type Operation struct {
	Method, Pattern string
	Access          Access
	Tag, ID         string
	Summary         string          // its description is in operations.md
	Params          []Param         // in the query
	Headers         []Param         // that say what is asked
	IDHeader        string          // in which an id is taken; empty: none is
	KeyHeader       string          // in which the key may be, in place of Authorization; empty: in none
	Request         reflect.Type    // nil: no body is read
	RequestMedia    string          // of a request whose lines are JSON
	Response        reflect.Type    // nil: no JSON body
	Preview         reflect.Type    // what is answered with 200 in place of Response, if a parameter asks for it
	Media           string          // of a body that is not JSON
	Status          []int           // of success
	Refusable       bool            // a refusal is answered as deny_status says
	DoesNotFit      reflect.Type    // the problem does-not-fit with what it adds; nil: there is none
	Problems        []*problem.Kind // beside those that all operations of its sort have
	RefusedBy       []*problem.Kind // that are answered as deny_status says, too

	Sends map[int][]string // headers of its own, by the status of the answer
}

// allProblems are the operation's own and those that all of its sort have.
func (op *Operation) allProblems() []*problem.Kind {
	list := append([]*problem.Kind{}, op.Problems...)
	if op.Access != Anyone {
		list = append(list, problem.KindUnauthorized, problem.KindWrongScope, problem.KindTooManyFailures, problem.KindBusy, problem.KindUnavailable,
			problem.KindNoSession, problem.KindReadOnly)
	}
	if op.Method != http.MethodGet {
		list = append(list, problem.KindOutcomeUnknown, problem.KindTimeout) // a body is waited for, whether it is read or not
	}
	if op.Request != nil {
		list = append(list, problem.KindNotJSON, problem.KindTooLarge, problem.KindMediaType, problem.KindInvalid)
	}
	return append(list, problem.KindInvalid, problem.KindInternal)
}

// A Param is a parameter of the query.
type Param struct {
	Name, Type, Doc string
	Names           string // all that begin so are this one; name is for people then
	Required        bool
	Enum            []string
	Most            int64 // of an integer
}

// Takes reports whether a parameter is given by this name.
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

// Access is which scopes of keys a route lets in, beside admin, which may do everything.
type Access int

// What a route may let in.
const (
	Anyone     Access = iota // no key
	AdminOnly                // writes, and keys
	Supporters               // what people do who help customers: overrides
	Backends                 // hits
	Readers                  // every GET of a customer, plan or meter, and metrics
	EveryScope               // a customer's quota, usage and open reservations
)

func (a Access) doc() string { return "Scope of the key: " + either(a.scopes(), "`") + "." }

// Scopes names the scopes that a route lets in, admin too.
func (a Access) Scopes() string {
	all := a.scopes()
	if a != AdminOnly {
		all = append(all, "admin")
	}
	return either(all, "")
}

// scopes are those that a route lets in; admin only where there is no other.
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

// either is "a, b or c", each word in quotes.
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
