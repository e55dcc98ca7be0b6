package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"quotad/internal/testkit"
	"quotad/internal/testkit/described"
)

// document is a served OpenAPI document, to hold answers against.
type document struct {
	*openapi3.T
	raw    []byte
	bodies *described.Document
}

// documents by their hash, because parsing one takes a while, and by the settings of a node of this
// process, because writing one takes a while.
var documents sync.Map

// documentedBy are the settings of a node that its document depends on.
type documentedBy struct {
	publicURL       string
	separateMetrics bool
}

// documentOf returns the OpenAPI document that the node serves. Nodes with the same settings serve the same
// document, so documentOf asks only the first of these nodes, and once: later the node may be stopping.
func documentOf(n *testNode) *document {
	n.t.Helper()
	if n.document == nil {
		return readDocument(n) // a process that may be started again as another
	}
	d := n.document.Load()
	if d == nil {
		if known, ok := documents.Load(n.documented); ok {
			d = known.(*document)
		} else {
			d = readDocument(n)
			documents.Store(n.documented, d)
		}
		n.document.Store(d)
	}
	return d
}

func readDocument(n *testNode) *document {
	n.t.Helper()
	response, err := n.client.Get(n.url + "/openapi.json")
	if err != nil {
		n.t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		n.t.Fatalf("/openapi.json: %s %v", response.Status, err)
	}
	sum := sha256.Sum256(raw)
	if known, ok := documents.Load(sum); ok {
		return known.(*document)
	}
	parsed, err := openapi3.NewLoader().LoadFromData(raw)
	if err == nil {
		err = parsed.Validate(context.Background())
	}
	if err != nil {
		n.t.Fatalf("/openapi.json is no OpenAPI document: %v", err)
	}
	bodies, err := described.New(raw)
	if err != nil {
		n.t.Fatalf("/openapi.json is no OpenAPI document: %v", err)
	}
	d := &document{parsed, raw, bodies}
	documents.Store(sum, d)
	return d
}

// check holds a response against the document: its status must be documented for the
// operation, its content type and its body must fit. What no operation is for must be
// answered by a problem document that fits the common one.
func (d *document) check(request *http.Request, response *http.Response, body []byte) error {
	path, params := d.match(request.URL)
	method := request.Method
	if method == http.MethodHead {
		return nil
	}
	var operation *openapi3.Operation
	if path != "" {
		operation = d.Paths.Value(path).GetOperation(method)
	}
	if operation == nil {
		return d.checkUnrouted(response, body)
	}
	err := openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request, PathParams: params,
			Route: &routers.Route{Spec: d.T, Path: path, PathItem: d.Paths.Value(path), Method: method, Operation: operation},
		},
		Status: response.StatusCode, Header: response.Header,
		Body: io.NopCloser(bytes.NewReader(body)),
		// Where the body is of JSON, it is held against its schema below.
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: isJSON(response)},
	})
	if err != nil || !isJSON(response) {
		return err
	}
	documented := operation.Responses.Status(response.StatusCode)
	if documented == nil || len(documented.Value.Content) == 0 { // it has no body
		return nil
	}
	media := response.Header.Get("Content-Type")
	switch content := documented.Value.Content[media]; {
	case content == nil:
		return fmt.Errorf("%s is not documented", media)
	case content.Schema == nil: // it says nothing of the body
		return nil
	}
	return d.bodies.Body(path, method, strconv.Itoa(response.StatusCode), media, body)
}

func isJSON(response *http.Response) bool {
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	return strings.HasSuffix(media, "json")
}

func (d *document) checkUnrouted(response *http.Response, body []byte) error {
	switch response.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return fmt.Errorf("no operation is documented, and it answered %d", response.StatusCode)
	}
	if ct := response.Header.Get("Content-Type"); ct != "application/problem+json" {
		return fmt.Errorf("a problem of content type %q", ct)
	}
	if !bytes.Contains(body, []byte(`"type":"/problems/`)) {
		return errors.New("not a problem document")
	}
	return nil
}

// match finds the path template of a URL. The parts are compared encoded, as they came.
func (d *document) match(u *url.URL) (template string, params map[string]string) {
	parts := strings.Split(u.EscapedPath(), "/")
	best := -1
	for path := range d.Paths.Map() {
		steps := strings.Split(path, "/")
		if len(steps) != len(parts) {
			continue
		}
		found, exact := map[string]string{}, 0
		for i, step := range steps {
			if strings.HasPrefix(step, "{") {
				found[strings.Trim(step, "{}")] = parts[i]
			} else if step != parts[i] {
				found = nil
				break
			} else {
				exact++
			}
		}
		if found != nil && exact > best {
			template, params, best = path, found, exact
		}
	}
	return template, params
}

// What every other test leans on: an answer that is not as documented is noticed.
func TestDocumentNoticesOtherAnswers(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(fixed("l", 5))
	var good string
	// On a slow machine the first hits may be let in without the database, and say nothing of limits.
	testkit.Eventually(t, "a hit that was charged", func() bool {
		a := n.hit(1).is(200)
		good = string(a.raw)
		return a.at("degraded") == nil
	})
	check := func(status int, contentType, body string) error {
		request, err := http.NewRequest("POST", n.url+"/v1/hits", nil)
		if err != nil {
			t.Fatal(err)
		}
		response := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {contentType}}}
		return documentOf(n).check(request, response, []byte(body))
	}
	if err := check(200, "application/json", good); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another member":     check(200, "application/json", strings.Replace(good, "{", `{"more":1,`, 1)),
		"a member of limits": check(200, "application/json", strings.Replace(good, `"mode"`, `"more":1,"mode"`, 1)),
		"a missing member":   check(200, "application/json", strings.Replace(good, `"meter":"requests",`, "", 1)),
		"a wrong type":       check(200, "application/json", strings.Replace(good, `"cost":1`, `"cost":"1"`, 1)),
		"another status":     check(202, "application/json", good),
		"another media type": check(200, "text/plain", good),
		"a problem of a hit": check(422, "application/problem+json", good),
	} {
		if err == nil {
			t.Errorf("%s is not noticed", name)
		}
	}
}

// methods are all that are tried on every path.
var methods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"}

func TestDocumentHasExactlyTheRoutes(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	d := documentOf(n)
	for path, item := range d.Paths.Map() {
		if path == "/v1/authorize" { // it has all methods, and the document has one
			continue
		}
		concrete := strings.NewReplacer("{key}", "x", "{n}", "1", "{id}", "x", "{name}", "not-found", "{limit}", "x", "{meter}", "x").Replace(path)
		if strings.Contains(concrete, "{") {
			t.Fatalf("do not know what to put into %s", path)
		}
		var has []string
		for _, method := range methods {
			a := n.as("").do(method, concrete, "")
			documented := item.GetOperation(method) != nil
			if documented == (a.status == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s: documented %v, and it answers %d", method, path, documented, a.status)
			}
			if documented {
				has = append(has, method)
			} else if allow := a.header.Get("Allow"); allow == "" {
				t.Errorf("%s %s: no Allow", method, path)
			}
		}
		if len(has) == 0 {
			t.Errorf("%s has no method", path)
		}
	}
	for _, path := range []string{"/v1", "/v1/", "/v1/hits/", "/v1/hit", "/v2/hits", "/v1/customers/a/b", "/debug/pprof/"} {
		n.do("GET", path, "").is(404).has("type", "/problems/not-found")
	}
}
