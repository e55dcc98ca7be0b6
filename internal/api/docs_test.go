package api

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"quotad/internal/api/apidoc"
	"quotad/internal/api/serve"
	"quotad/internal/events"
)

// needInvoices are the routes that need invoices, and have tests of their own.
var needInvoices = regexp.MustCompile(`/(invoices|charges|credits)`)

// What the documentation shows can be sent as it is, and is answered as it says.
func TestExamplesWork(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(strings.Replace(hourly, `"limit":5`, `"limit":50`, 1))
	reservation := "" // in place of the one in the examples, or a webhook
	send := func(list []serve.Route) {
		for i := range list {
			rt, x := &list[i], apidoc.Examples[list[i].ID]
			if (rt.Request != nil) != (x.Request != "") || (rt.Response != nil) != (x.Response != "") || strings.Contains(rt.Pattern, "{") != (x.Path != "") {
				t.Errorf("%s: its example does not fit it", rt.ID)
			}
			if rt.Method == "DELETE" || needInvoices.MatchString(rt.Pattern) || rt.ID == "webhooks.test" { // that would be sent to the internet
				continue
			}
			path := strings.NewReplacer("{key}", x.Path, "{n}", "1", "{limit}", "hourly", "{meter}", "requests", "{name}", x.Path, "{id}",
				reservation).Replace(rt.Pattern)
			got := n.do(rt.Method, path+x.Query, x.Request, x.Headers...)
			if got.status >= 300 {
				t.Errorf("%s: %d %s", rt.ID, got.status, got.text)
			}
			if rt.ID == "reservations.create" || rt.ID == "webhooks.create" {
				reservation, _ = got.json["id"].(string)
			}
		}
	}
	send(slices.Concat(n.server.admin.Routes(), n.server.drafts.Routes(), n.server.billing.Routes()))
	send(slices.Concat(n.server.hits.Routes(), n.server.usage.Routes(), n.server.hits.ReservationRoutes(), n.server.usage.ListRoutes()))
	send(n.server.imports.Routes())
	send(n.server.Service.Routes())
	send(n.server.hooks.Routes())
	document := string(OpenAPI("test"))
	for id := range apidoc.Examples {
		if !strings.Contains(document, `"operationId": "`+id+`"`) {
			t.Errorf("there is no operation %s", id)
		}
	}
}

// Each operation has a description, and each description is of something.
func TestDocsDescribeEachOperation(t *testing.T) {
	t.Parallel()
	described := map[string]bool{"info": true, "key": true, "idHeader": true, "webhook": true}
	for _, rt := range new(Server).routes() {
		described[rt.ID] = true
		if apidoc.Texts[rt.ID] == "" {
			t.Errorf("operations.md has no section %s", rt.ID)
		}
	}
	for id := range apidoc.Texts {
		if !described[id] {
			t.Errorf("operations.md: there is no operation %s", id)
		}
	}
}

// Every link of the page leads somewhere, and no row of answers lacks its body.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	page := string(apidoc.New(serve.Operations(new(Server).routes()), events.Types, "", "https://quota.example.com/").Page(""))
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
	if row := regexp.MustCompile(`<tr><td>(4|5)[^\n]*<td>(<tr>|</tbody>|\n)`).FindString(page); row != "" {
		t.Errorf("no body: %s", row)
	}
	if len(page) > 530_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
}
