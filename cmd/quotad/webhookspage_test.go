package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// TestWebhookPages: a webhook is made, tested, rotated, replayed and deleted by the pages, which show what
// became of each delivery.
func TestWebhookPages(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusNoContent)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(receiver.Close)
	n := start(t, "", "--webhook-allow-private")
	n.setUp(fixed("hourly", 100))
	testkit.Eventually(t, "what happened before there is a webhook is shown", func() bool {
		return query[int](t, n.databaseURL, `SELECT count(*)::int FROM outbox`) == 0
	})
	b := n.signedIn(testAdminKey)
	b.get("/admin/webhooks").is(200).says("There is no webhook", "New webhook")
	b.post("/admin/webhooks", url.Values{"url": {"ftp://example.com"}, "types": {"invoice.paid\nodd.type"}}).is(422).
		says(`id="webhook-url-wrong"`, `id="webhook-types-wrong"`, "ftp://example.com", "odd.type", "invoice.finalized")
	b.post("/admin/webhooks", url.Values{"url": {""}}).is(422).says("This is needed.")

	secretOf := regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`)
	made := b.post("/admin/webhooks", url.Values{
		"url":   {receiver.URL + "/hook"},
		"types": {"customer.created\r\nplan.published"},
	}).is(200).says("It is shown this once")
	secret := secretOf.FindString(strings.ReplaceAll(made.text, "&#43;", "+"))
	id := regexp.MustCompile(`wh_[A-Za-z0-9_-]+`).FindString(made.text)
	if secret == "" || id == "" {
		t.Fatalf("no secret, or no id:\n%s", made.text)
	}
	here := "/admin/webhooks/" + id
	b.get("/admin/webhooks").is(200).says(receiver.URL+"/hook", "customer.created, plan.published").lacks("whsec_")
	b.get(here).is(200).says("Nothing was sent yet", "Send a test", "New secret").lacks("whsec_")

	n.do("PUT", "/v1/customers/new", onPlan).is(201)
	testkit.Eventually(t, "the page shows the delivery", func() bool {
		text := b.get(here).is(200).text
		return strings.Contains(text, "customer.created") && strings.Contains(text, "delivered")
	})
	b.post(here+"/test", nil).goes(here + "?done=tested")
	b.get(here + "?done=tested").says("The test was taken.")
	status.Store(http.StatusInternalServerError)
	b.post(here+"/test", nil).is(200).says("The test was not taken", "500")
	n.do("PUT", "/v1/customers/newer", onPlan).is(201)
	testkit.Eventually(t, "the page shows the failure", func() bool {
		text := b.get(here).is(200).text
		return strings.Contains(text, "waiting") && strings.Contains(text, "500") && strings.Contains(text, "Failing since")
	})
	status.Store(http.StatusGone)
	n.do("PUT", "/v1/customers/newest", onPlan).is(201)
	testkit.Eventually(t, "the page shows that it is disabled", func() bool {
		return strings.Contains(b.get(here).is(200).text, "disabled: it answered 410")
	})
	b.get("/admin/webhooks").says("disabled: it answered 410")
	replay := url.Values{"from": {time.Now().Add(-time.Hour).UTC().Format("2006-01-02T15:04")}, "to": {""}}
	b.post(here+"/replay", replay).is(409).says("disabled")
	status.Store(http.StatusOK)
	b.post(here+"/test", nil).goes(here + "?done=enabled")
	b.get(here).lacks("disabled: it answered 410")

	b.post(here+"/replay", url.Values{"from": {"yesterday"}}).is(422).says("Write a date")
	b.post(here+"/replay", url.Values{"from": {"2031-01-31T12:00"}, "to": {"2031-01-31T11:00"}}).is(422).says("must be after from")
	b.post(here+"/replay", replay).goes(here + "?done=replayed")
	testkit.Eventually(t, "what failed is delivered", func() bool {
		text := b.get(here).is(200).text // those from before there was the webhook, too
		return strings.Count(text, `<span class="chip good">delivered</span>`) >= 5 && !strings.Contains(text, ">waiting<") && !strings.Contains(text, ">dead<")
	})
	other := b.post(here+"/rotate", nil).is(200).says("It is shown this once", "The secret of before signs until")
	if is := secretOf.FindString(strings.ReplaceAll(other.text, "&#43;", "+")); is == "" || is == secret {
		t.Errorf("the new secret is %q", is)
	}
	_, reader := n.newKey("read")
	r := n.signedIn(reader)
	r.get("/admin").is(200).lacks("/admin/webhooks")
	for _, path := range []string{"/admin/webhooks", here} {
		r.get(path).is(403)
	}
	for _, path := range []string{here + "/test", here + "/rotate", here + "/replay", here + "/delete"} {
		r.post(path, replay).is(403)
	}
	b.post(here+"/delete", nil).goes("/admin/webhooks?done=deleted")
	b.get(here).is(404).says("There is no such webhook")
	for _, what := range []string{"test", "rotate", "delete", "replay"} {
		if got := b.post(fmt.Sprintf("%s/%s", here, what), replay); got.status != 404 {
			t.Errorf("%s of a webhook that is gone is %d", what, got.status)
		}
	}
}
