package api

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// An operation is what clients are told of a route.
type operation struct {
	method, pattern string
	access          access
	tag, id         string
	summary, doc    string
	params          []param      // in the query
	idHeader        string       // in which an id is taken; empty: none is
	request         reflect.Type // nil: no body is read
	requestMedia    string       // of a request whose lines are JSON
	response        reflect.Type // nil: no JSON body
	media           string       // of a body that is not JSON
	status          []int        // of success
	refusable       bool         // a refusal is answered as deny_status says
	doesNotFit      reflect.Type // the problem does-not-fit with what it adds; nil: there is none
	problems        []*kind      // beside those that all operations of its sort have
}

// allProblems are the operation's own and those that all of its sort have.
func (op *operation) allProblems() []*kind {
	list := append([]*kind{}, op.problems...)
	if op.access != anyone {
		list = append(list, kindUnauthorized, kindWrongScope, kindBusy, kindUnavailable, kindNoSession)
	}
	if op.method != http.MethodGet {
		list = append(list, kindOutcomeUnknown)
	}
	if op.request != nil {
		list = append(list, kindNotJSON, kindTimeout, kindTooLarge, kindMediaType, kindInvalid)
	}
	return append(list, kindInvalid, kindInternal)
}

// A param is a parameter of the query.
type param struct {
	name, kind, doc string
	names           string // all that begin so are this one; name is for people then
	required        bool
	enum            []string
	most            int // of an integer
}

// takes reports whether a parameter is given by this name.
func (p *param) takes(name string) bool {
	return p.name == name || p.names != "" && strings.HasPrefix(name, p.names)
}

func (p *param) schema() *huma.Schema {
	s := &huma.Schema{Type: p.kind}
	switch p.kind {
	case "date-time":
		s.Type, s.Format = huma.TypeString, p.kind
	case "integer":
		least, most := 1.0, float64(p.most)
		s.Minimum, s.Maximum = &least, &most
	}
	for _, value := range p.enum {
		s.Enum = append(s.Enum, value)
	}
	return s
}

// access is which scopes of keys a route lets in, beside admin, which may do everything.
type access int

// What a route may let in.
const (
	anyone     access = iota // no key
	adminOnly                // writes, and keys
	backends                 // hits
	readers                  // every GET of a customer, plan or meter
	everyScope               // a customer's quota and usage
)

func (a access) doc() string { return "Scope: " + a.scopes() + "." }

// scopes names the scopes that a route lets in; admin only where there is no other.
func (a access) scopes() string {
	switch a {
	case backends:
		return "backend"
	case readers:
		return "read"
	case everyScope:
		return "backend or read"
	}
	return "admin"
}
