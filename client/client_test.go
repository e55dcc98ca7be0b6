package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// serve is a client of a server that answers all with a status and a body. It keeps the last request.
func serve(t *testing.T, status int, answer string) (c *Client, asked *http.Request, body *string) {
	t.Helper()
	asked, body = &http.Request{}, new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		*asked, *body = *r, string(raw)
		w.Header().Set("ETag", `"7"`)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return &Client{BaseURL: server.URL, Key: "secret"}, asked, body
}

func TestClientReads(t *testing.T) {
	t.Parallel()
	c, asked, _ := serve(t, 200, `{"key":"a/b","features":{"seats":9007199254740993},"later":1}`)
	got, etag, err := c.Customer(t.Context(), "a/b")
	if err != nil || etag != `"7"` || got.Key != "a/b" || got.Features["seats"] != json.Number("9007199254740993") {
		t.Errorf("%+v, %s, %v", got, etag, err)
	}
	if asked.Method != "GET" || asked.URL.EscapedPath() != "/v1/customers/a%2Fb" || asked.Header.Get("Authorization") != "Bearer secret" ||
		asked.Header.Get("Content-Type") != "" {
		t.Errorf("%s %s %v", asked.Method, asked.URL, asked.Header)
	}
	if _, err = c.Customers(t.Context(), url.Values{"search": {"a b"}}); err != nil || asked.URL.RequestURI() != "/v1/customers?search=a+b" {
		t.Errorf("%s, %v", asked.URL, err)
	}
}

func TestClientWrites(t *testing.T) {
	t.Parallel()
	c, asked, body := serve(t, 200, `{}`)
	if err := c.PutDraft(t.Context(), "pro", "", true, []byte(`{ "name"`)); err != nil || *body != `{ "name"` {
		t.Errorf("%s, %v", *body, err)
	}
	if asked.Method != "PUT" || asked.URL.RequestURI() != "/v1/plans/pro/draft?rebase=true" || asked.Header.Get("If-None-Match") != "*" ||
		asked.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", asked.Method, asked.URL, asked.Header)
	}
	if err := c.PutPlan(t.Context(), "pro", `"7"`, &PlanInput{Name: "Pro"}); err != nil || asked.Header.Get("If-Match") != `"7"` {
		t.Errorf("%v, %v", asked.Header, err)
	}
}

func TestClientTellsProblems(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]Problem{
		`{"type":"/problems/invalid","title":"Invalid","status":422,"detail":"no","errors":[{"field":"a","detail":"b"}]}`: {
			Type:  "/problems/invalid",
			Title: "Invalid", Status: 422, Detail: "no", Errors: []FieldError{{"a", "b"}},
		},
		"<html>": {Title: "Unprocessable Entity", Status: 422},
	} {
		c, _, _ := serve(t, 422, answer)
		_, err := c.Overview(t.Context())
		got, ok := errors.AsType[*Problem](err)
		if !ok || got.Error() != want.Error() || got.Title != want.Title || len(got.Errors) != len(want.Errors) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	c, _, _ := serve(t, 200, `{"at":`)
	if _, err := c.Overview(t.Context()); err == nil {
		t.Error("half an answer is one")
	}
}
