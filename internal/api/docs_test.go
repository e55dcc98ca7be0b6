package api

import (
	"regexp"
	"strings"
	"testing"
)

// What the documentation shows can be sent as it is, and is answered as it says.
func TestExamplesWork(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	reservation := "" // in place of the one in the examples
	send := func(list []route) {
		for i := range list {
			rt, x := &list[i], examples[list[i].id]
			if (rt.request != nil) != (x.request != "") || (rt.response != nil) != (x.response != "") || strings.Contains(rt.pattern, "{") != (x.path != "") {
				t.Errorf("%s: its example does not fit it", rt.id)
			}
			if rt.method == "DELETE" {
				continue
			}
			path := strings.NewReplacer("{key}", x.path, "{n}", "1", "{limit}", "hourly", "{name}", x.path, "{id}", reservation).Replace(rt.pattern)
			got := n.do(rt.method, path+x.query, x.request)
			if got.status >= 300 {
				t.Errorf("%s: %d %s", rt.id, got.status, got.text)
			}
			if rt.id == "reserve" {
				reservation, _ = got.json["id"].(string)
			}
		}
	}
	send(adminRoutes())
	send(backendRoutes())
	send(reservationRoutes())
	send(importRoutes())
	send(serviceRoutes())
	for id := range examples {
		if !strings.Contains(string(OpenAPI("test")), `"operationId": "`+id+`"`) {
			t.Errorf("there is no operation %s", id)
		}
	}
}

// Every link of the page leads somewhere, and no row of answers lacks its body.
func TestDocsLinks(t *testing.T) {
	page := string(newDocument(operations(routes(false)), "", "https://quota.example.com/").page(""))
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if strings.Count(page, ` id="`+m[1]+`"`) != 1 {
			t.Errorf("#%s leads nowhere", m[1])
		}
	}
	for _, want := range []string{
		"URL=https://quota.example.com\n", "-H &#34;Authorization: Bearer $KEY&#34;",
		`<a href="#schema-Decision">Decision</a> or <a href="#schema-Refusal">Refusal</a>`,
		`<a href="#schema-Refusal">Refusal</a> or <a href="#schema-Problem">Problem</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if row := regexp.MustCompile(`<tr><td>(4|5)[^\n]*<td></td></tr>`).FindString(page); row != "" {
		t.Errorf("no body: %s", row)
	}
	if len(page) > 200_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}
