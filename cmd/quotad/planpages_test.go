package main

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// signedIn is a browser of somebody who signed in with a key.
func (n *testNode) signedIn(key string) *browser {
	n.t.Helper()
	b := n.browser()
	b.post("/admin/sign-in", url.Values{"key": {key}}).is(303)
	return b
}

// fields are those of the page's form as the browser would send it.
func (r *reply) fields() url.Values {
	r.t.Helper()
	v := url.Values{}
	form := r.text[strings.Index(r.text, `<form class="stack editor"`):]
	for _, m := range regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]*>`).FindAllString(form, -1) {
		name := regexp.MustCompile(` name="([^"]*)"`).FindStringSubmatch(m)[1]
		if value := regexp.MustCompile(` value="([^"]*)"`).FindStringSubmatch(m); value != nil {
			v.Set(html.UnescapeString(name), html.UnescapeString(value[1]))
		}
	}
	for _, m := range regexp.MustCompile(`(?s)<select id="[^"]*" name="([^"]+)".*?</select>`).FindAllStringSubmatch(form, -1) {
		if on := regexp.MustCompile(`<option value="([^"]*)" selected>`).FindStringSubmatch(m[0]); on != nil {
			v.Set(html.UnescapeString(m[1]), on[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?s)<textarea id="[^"]*" name="([^"]+)"[^>]*>(.*?)</textarea>`).FindAllStringSubmatch(form, -1) {
		v.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return v
}

// What the form shows, sent back as it is, is the plan: nothing differs.
func TestPlanEditorRoundTrip(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	n.do("PUT", "/v1/plans/tiers", `{"name":"Tiers <script>","currency":"JPY","interval":"year","interval_count":2,"base_price_minor":500,"base_in":"advance","minimum_minor":9,"meters":["emails","seats"],
		"features":{"sso":true,"seats":123456789012345,"note":"a"},
		"limits":[{"name":"x","meter":"requests","algorithm":"sliding_log","limit":10,"window":"1h","precision":"1s","per":"ip","mode":"shadow","on_outage":"deny"},
			{"name":"y","meter":"renders","algorithm":"concurrency","limit":3,"ttl":"5m"},
			{"name":"z","meter":"requests","algorithm":"fixed_window","limit":10,"window":"1h","align":"first_hit"}],
		"prices":[{"meter":"requests","model":"graduated","included":7,"minimum_minor":1,"maximum_minor":99,
			"tiers":[{"up_to":10,"unit_price":"0.5","flat_price":"3"},{"up_to":null,"unit_price":"0.25"}]},
			{"meter":"exports","model":"package","package_size":100,"package_price":"1.5"}]}`).is(201)
	b := n.signedIn(testAdminKey)
	for _, plan := range []string{"pro", "tiers"} {
		path := "/admin/plans/" + plan
		page := b.get(path).is(200)
		if strings.Contains(page.text, "<script>") {
			t.Error("a plan's name is not escaped")
		}
		b.post(path, page.fields()).is(303)
		b.get(path+"/publish").is(200).says("Nothing differs", "Publish version 2")
		if draft := string(n.do("GET", "/v1/plans/"+plan+"/draft", "").is(200).raw); !strings.Contains(draft, `"problems":[]`) {
			t.Errorf("%s: %s", plan, draft)
		}
		json := b.get(path + "?json").is(200).fields()
		b.post(path, json).is(303)
		b.get(path + "/publish").says("Nothing differs")
		b.post(path+"/discard", nil).is(303)
		b.get(path + "/publish").says("There is no draft")
	}
}

// From a change in the form to the next version: problems beside their fields, what each change
// does, and what it is published to.
func TestPlanEditorPublishes(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	b := n.signedIn(testAdminKey)
	const path = "/admin/plans/pro"
	f := b.get(path).is(200).fields()
	f.Set("limits[0].limit", "many")
	b.post(path, f).is(422).says(`aria-invalid="true" aria-describedby="f-limits-0-limit-wrong"`, "Write a whole number", `value="many"`)
	f.Set("limits[0].limit", "6000")
	f.Set("limits[0].window", "soon")
	f.Set("limits[0].algorithm", "sliding_window")
	b.post(path, f).is(303)
	b.get(path).is(200).says(`id="f-limits-0-window-wrong"`, "1 thing keeps this draft from being published")
	b.get(path+"/publish").is(200).says("cannot be published yet", `<a href="/admin/plans/pro#f-limits-0-window">Limit hourly, window</a>`)
	b.get(path + "/play?meter=requests").is(200).says("The draft cannot be played yet")

	f = b.get(path).fields()
	f.Set("limits[0].window", "1h")
	f.Set("do", "add limits")
	b.post(path, f).is(303)
	f = b.get(path).says("New limit").fields()
	f.Set("do", "remove limits 9")
	b.post(path, f).is(303)
	f = b.get(path).fields()
	f.Set("prices[0].included", "1200000")
	b.post(path, f).is(303)
	review := b.get(path+"/publish").is(200).says(
		"<b>hourly, algorithm</b> <del>Fixed window</del> <ins>Sliding window</ins>", "another algorithm: the limit starts again for everyone when this is published",
		"<b>hourly, units</b> <del>5,000</del> <ins>6,000</ins>", "what customers have used stays used",
		"<b>requests, included units</b> <del>1,000,000</del> <ins>1,200,000</ins>", "from each customer’s next period", "Publish version 2")
	tag := html.UnescapeString(regexp.MustCompile(`name="draft" value="([^"]*)"`).FindStringSubmatch(review.text)[1])
	b.post(path+"/publish", url.Values{"draft": {`"0"`}}).is(412).says("changed since you looked at it")
	b.post(path+"/publish", url.Values{"draft": {tag}, "apply_to": {"new"}}).is(303)
	b.get(path).is(200).says("Version 2 is in force")
	n.do("GET", "/v1/plans/pro", "").is(200).has("apply_to", "new")
	n.do("GET", "/v1/plans/pro/draft", "").is(404)
	b.get(path+"/versions").is(200).says("Version 2", "Version 1", "for new customers", "<ins>Sliding window</ins>", "The first version.")
}

// Somebody else publishes first: nothing is written, and both are shown.
func TestPlanEditorShowsBoth(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	b := n.signedIn(testAdminKey)
	const path = "/admin/plans/pro"
	f := b.get(path).fields()
	f.Set("base_price_minor", "59.00")
	b.post(path, f).is(303)
	review := b.get(path + "/publish").is(200)
	tag := html.UnescapeString(regexp.MustCompile(`name="draft" value="([^"]*)"`).FindStringSubmatch(review.text)[1])
	n.do("PUT", "/v1/plans/pro", strings.Replace(northwindPlan, `"limit":5000`, `"limit":5500`, 1), `If-Match: "1"`).is(201)
	b.post(path+"/publish", url.Values{"draft": {tag}}).is(412).says("Somebody else has published meanwhile",
		"What somebody else published", "<del>5,000</del> <ins>5,500</ins>", "What this draft changes", "<del>49.00</del> <ins>59.00</ins>", "Put it on version 2")
	n.do("GET", "/v1/plans/pro", "").has("version", 2)
	b.get(path).says("Somebody has published version 2")
	b.post(path+"/rebase", nil).is(303)
	b.get(path+"/publish").says("<del>5,500</del> <ins>5,000</ins>", "<del>49.00</del> <ins>59.00</ins>", "Publish version 3")

	// Two edit the draft itself: the second is told, and keeps what was typed.
	first, second := b.get(path).fields(), b.get(path).fields()
	first.Set("name", "First")
	second.Set("name", "Second")
	b.post(path, first).is(303)
	b.post(path, second).is(412).says("Somebody else has saved this draft", `value="Second"`)
	if draft := string(n.do("GET", "/v1/plans/pro/draft", "").raw); !strings.Contains(draft, "First") {
		t.Errorf("the draft is %s", draft)
	}
}

// What a draft would do, on its page: played, and compared with the past.
func TestPlanPlayPage(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	b := n.signedIn(testAdminKey)
	const path = "/admin/plans/pro"
	b.get(path + "/play").is(200).says("There is no draft")
	f := b.get(path).fields()
	f.Set("limits[0].limit", "100")
	b.post(path, f).is(303)
	b.get(path+"/play?meter=requests").is(200).says("By the draft", "By what is in force", "hourly", "Limit hourly is used up.", `value="1h"`)
	b.get(path+"/play?meter=requests&window=1h&steady=200&burst=0&cost=1&pattern=steady&windows=2").is(200).says("<b data-admitted>200</b> admitted",
		"<b data-refused>200</b> refused")
	b.get(path + "/play?window=never").is(422).says("Write a length such as")
	b.get(path+"/play?compare=1").is(200).says("Against the past 30 days", "1 customer asked for", "Billed", "Refused units count every retry")
	b.get(path+"/play?compare=1&customer=acme").is(200).says("acme asked for", "Customers refused at least once")
	b.get(path + "/play?compare=1&customer=nobody").is(200).says("there is no such customer")
	if to := b.get(path + "/play?hit=1").is(303).header.Get("Location"); !strings.Contains(to, "hits=0") {
		t.Errorf("a hit leads to %s", to)
	}
}

// Who may: support and read look, backend has no pages, and what is not there is not there.
func TestPlanPagesScopes(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.northwind()
	const path = "/admin/plans/pro"
	n.do("PUT", "/v1/plans/pro/draft", northwindPlan).is(201)
	for _, scope := range []string{"read", "support"} {
		_, key := n.newKey(scope)
		b := n.signedIn(key)
		page := b.get(path).is(200)
		if strings.Contains(page.text, "Save the draft") || strings.Contains(page.text, "Discard") {
			t.Errorf("%s may change the plan", scope)
		}
		b.get(path + "/play").is(200).says("Only keys of the scope admin play drafts")
		b.get(path + "/publish").is(200).says("Only keys of the scope admin publish")
		b.get(path + "/versions").is(200)
		b.post(path, page.fields()).is(403)
		b.post(path+"/discard", nil).is(403)
		b.post(path+"/rebase", nil).is(403)
		b.get("/admin/plans/nothing").is(404)
	}
	b := n.signedIn(testAdminKey)
	b.get("/admin/plans/nothing").is(200).says("Not published yet", "No limits.")
	b.get("/admin/plans/no%20key").is(404)
	n.browser().get(path).is(303)
	f := url.Values{"json": {"{"}}
	b.post("/admin/plans/nothing", f).is(400).says("not JSON", `id="json-wrong"`)
	f.Set("json", `{"colour":"red"}`)
	b.post("/admin/plans/nothing", f).is(422).says("colour", "&#34;red&#34;")
	n.do("GET", "/v1/plans/nothing/draft", "").is(404)
	b.post("/admin/plans/nothing", url.Values{"name": {"New"}, "currency": {"USD"}, "interval": {"month"}, "limits": {"0"}, "prices": {"0"}}).is(303)
	tag := html.UnescapeString(regexp.MustCompile(`name="draft" value="([^"]*)"`).FindStringSubmatch(b.get("/admin/plans/nothing/publish").is(200).text)[1])
	b.post("/admin/plans/nothing/publish", url.Values{"draft": {tag}}).is(303)
	n.do("GET", "/v1/plans/nothing", "").is(200).has("version", 1)
}
