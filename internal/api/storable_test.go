package api

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"quotad/internal/api/apidoc"
)

// Text that PostgreSQL cannot store is refused wherever a request may have it: in each text and each
// member of a body, in parameters, in paths and in headers. None of it is an error of ours.
func TestTextsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	refused := func(what string, got reply) {
		t.Helper()
		if got.status < 400 || got.status >= 500 {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	for _, rt := range new(Server).routes() {
		x := apidoc.Examples[rt.ID]
		path := strings.NewReplacer("{key}", x.Path, "{n}", "1", "{limit}", "hourly", "{meter}", "requests", "{name}", x.Path, "{id}", "x").Replace(rt.Pattern)
		if strings.Contains(rt.Pattern, "{key}") && x.Path == "" {
			path = strings.Replace(rt.Pattern, "{key}", "acme", 1)
		}
		for _, bad := range []string{"%00", "%FF", "a%00b", "a%ED%A0%80"} {
			for _, p := range rt.Params {
				name := p.Name
				if p.Names != "" {
					name = p.Names + "x"
				}
				refused(rt.ID+" "+name+"="+bad, n.do(rt.Method, path+"?"+url.QueryEscape(name)+"="+bad, x.Request))
			}
			refused(rt.ID+" a parameter named "+bad, n.do(rt.Method, path+"?"+bad+"=1", x.Request))
			for part := range strings.SplitSeq(rt.Pattern, "/") {
				if strings.HasPrefix(part, "{") {
					refused(rt.ID+" "+part, n.do(rt.Method, strings.Replace(rt.Pattern, part, bad, 1), x.Request))
				}
			}
		}
		for _, body := range spoiled(t, x.Request) {
			got := n.do(rt.Method, path, body)
			if rt.ID == "hits.createBatch" { // says of each hit what is wrong with it
				if !strings.Contains(got.text, `"status":422`) {
					t.Errorf("%s: %s", body, got.text)
				}
				continue
			}
			refused(rt.ID+" "+body, got)
		}
		for _, name := range []string{"Idempotency-Key", "If-Match", "If-None-Match", "X-Request-Id", "Traceparent"} {
			if got := n.do(rt.Method, path, x.Request, name, "\"\xff\xed\xa0\x80\""); got.status >= 500 {
				t.Errorf("%s with %s: %d %s", rt.ID, name, got.status, got.text)
			}
		}
		if got := n.do(rt.Method, path, x.Request, "Authorization", "Bearer \xff"); rt.Access != apidoc.Anyone && got.status != http.StatusUnauthorized {
			t.Errorf("%s with such a key: %d", rt.ID, got.status)
		}
	}
	if got := n.want(422, "PUT", "/v1/plans/other/draft", `{"name":"a\u0000b","limits":[]}`); len(got.json["errors"].([]any)) != 1 ||
		!strings.Contains(got.text, `"field":"name"`) {
		t.Error(got.text)
	}
	n.want(201, "PUT", "/v1/plans/other/draft", `{"name":"a\\u0000b"}`) // no such character
}

// spoiled are the bodies that an example becomes when one of its texts, or of its names, has U+0000.
func spoiled(t *testing.T, example string) (all []string) {
	t.Helper()
	if example == "" {
		return nil
	}
	var whole any
	if json.Unmarshal([]byte(example), &whole) != nil {
		return nil // an import: lines
	}
	const mark = "\x00"
	var walk func(at any, put func(any))
	write := func() {
		body, err := json.Marshal(whole)
		check(t, err)
		if !slices.Contains(all, string(body)) {
			all = append(all, string(body))
		}
	}
	walk = func(at any, put func(any)) {
		switch v := at.(type) {
		case string:
			put(v + mark)
			write()
			put(v)
		case []any:
			for i := range v {
				walk(v[i], func(x any) { v[i] = x })
			}
		case map[string]any:
			v["x"+mark] = "y"
			write()
			delete(v, "x"+mark)
			for name := range v {
				walk(v[name], func(x any) { v[name] = x })
			}
		}
	}
	walk(whole, func(x any) { whole = x })
	return all
}
