package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"quotad/client"
	"quotad/internal/api/respond"
	"quotad/internal/api/serve"
)

// holdType holds an answer against the client's type of it: every member has a field, and what the
// type is written as again is what was answered. The answers of hits are written by hand.
func (n *node) holdType(op *openapi3.Operation, got reply) {
	n.t.Helper()
	rt, ok := routesByID()[op.OperationID]
	if !ok {
		return
	}
	var types []reflect.Type
	switch {
	case got.json["type"] == respond.QuotaExceeded:
		types = []reflect.Type{reflect.TypeFor[client.Refusal]()}
	case got.status < 400 && rt.ID == "hits.createBatch":
		n.holdBatch(got)
		return
	case got.status < 400:
		types = []reflect.Type{rt.Response, rt.Preview}
	default:
		types = []reflect.Type{reflect.TypeFor[client.Problem](), rt.DoesNotFit}
	}
	if err := isOneOf([]byte(got.text), types); err != nil {
		n.t.Errorf("%s: %v\n%s", rt.ID, err, got.text)
	}
}

// holdHeaders names the operation and the header if an answer has a header that the document does not have for the answer, or
// if an answer lacks the ETag of its kind.
func (n *node) holdHeaders(op *openapi3.Operation, of *openapi3.Response, got reply) {
	n.t.Helper()
	documented := make(map[string]bool)
	for name := range of.Headers {
		documented[http.CanonicalHeaderKey(name)] = true
	}
	for name := range got.header {
		if !documented[name] && !slices.Contains(ofHTTP, name) {
			n.t.Errorf("the operation %s answers %d with the header %s, which the document does not have for this answer", op.OperationID, got.status, name)
		}
	}
	if documented["Etag"] && got.header.Get("ETag") == "" {
		n.t.Errorf("the operation %s answers %d without the ETag that the document has for this answer", op.OperationID, got.status)
	}
}

// ofHTTP are headers of HTTP and of browsers, which say nothing of an operation.
var ofHTTP = []string{"Cache-Control", "Connection", "Content-Length", "Content-Security-Policy", "Content-Type", "Date", "Vary", "X-Content-Type-Options"}

// routesByID returns all routes, by the ids of their operations.
var routesByID = sync.OnceValue(func() map[string]serve.Route {
	all := make(map[string]serve.Route)
	for _, rt := range new(Server).routes() {
		all[rt.ID] = rt
	}
	return all
})

// holdBatch is holdType of a batch: each result is one of three types.
func (n *node) holdBatch(got reply) {
	n.t.Helper()
	var all struct{ Results []json.RawMessage }
	check(n.t, json.Unmarshal([]byte(got.text), &all))
	for _, one := range all.Results {
		if err := isOneOf(one, []reflect.Type{reflect.TypeFor[client.Decision](), reflect.TypeFor[client.Refusal](), reflect.TypeFor[client.Problem]()}); err != nil {
			n.t.Errorf("hitBatch: %v\n%s", err, one)
		}
	}
}

// isOneOf reports why a text is of none of the types.
func isOneOf(text []byte, types []reflect.Type) (err error) {
	for _, t := range types {
		if t == nil {
			continue
		}
		if err = isOf(text, t); err == nil {
			return nil
		}
	}
	return err
}

func isOf(text []byte, t reflect.Type) error {
	value := reflect.New(t).Interface()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(value); err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	again, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if was, is := numbered(text), numbered(again); !reflect.DeepEqual(was, is) {
		return fmt.Errorf("%s is written as %s", t, again)
	}
	return nil
}

// numbered is JSON with its numbers as they are written.
func numbered(text []byte) (value any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&value) // it was decoded before
	return value
}

// An answer that its type does not have whole is told.
func TestTypesAreWhole(t *testing.T) {
	t.Parallel()
	meter := []reflect.Type{reflect.TypeFor[client.Meter]()}
	for text, wrong := range map[string]string{
		`{"key":"a","unit":"b","name":"","kind":"flow"}`:         "",
		`{"key":"a","unit":"b"}`:                                 "is written as",
		`{"key":"a","unit":"b","name":"","kind":"flow","of":""}`: "unknown field",
	} {
		if err := isOneOf([]byte(text), meter); (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
