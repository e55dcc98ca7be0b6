package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quotad/client"
	"quotad/internal/api/serve"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/pgtest"
	"quotad/internal/web"
	"quotad/internal/web/page"
	"quotad/internal/web/portal"
)

// oneError fails unless a log has one ERROR since it was emptied, and that has a stack.
func oneError(t *testing.T, what string, log *pgtest.Log, before int) {
	t.Helper()
	said := log.String()[before:]
	if strings.Count(said, "level=ERROR") != 1 || !strings.Contains(said, "stack=") || !strings.Contains(said, "a defect") {
		t.Errorf("%s: logged %s", what, said)
	}
}

// Whatever a listener serves, a panic is one answer of 500 and one ERROR, and the next request on the
// connection is served. Only an abort is still what net/http makes of it.
func TestPanicsOfHandlers(t *testing.T) {
	t.Parallel()
	log := new(pgtest.Log)
	s := settingsOf(t, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0")
	f, err := openFront(t.Context(), s, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	faulty := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("how") {
		case "abort":
			panic(http.ErrAbortHandler)
		case "begun":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("half of "))
			panic(errors.New("a defect"))
		}
		panic("a defect")
	})
	f.use(faulty, faulty)
	client := newClient()
	ask := func(path string) (int, string, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response.StatusCode, string(body), err
	}
	for _, address := range f.urls {
		for range 3 { // the third on the fast path
			before := len(log.String())
			status, body, err := ask(address + "/v1/hits")
			if err != nil || status != 500 || !strings.Contains(body, `"type":"/problems/internal"`) {
				t.Errorf("%d %s %v", status, body, err)
			}
			oneError(t, address, log, before)
		}
		before := len(log.String())
		if _, body, err := ask(address + "/x?how=begun"); err == nil {
			t.Errorf("an answer that was cut off looks whole: %s", body)
		}
		oneError(t, "begun", log, before)
		before = len(log.String())
		if _, _, err := ask(address + "/x?how=abort"); err == nil || strings.Contains(log.String()[before:], "ERROR") {
			t.Errorf("%v; logged %s", err, log.String()[before:])
		}
	}
}

// A page that panics is the page of a defect, and a stream that does ends.
func TestPanicsOfPages(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	log := new(pgtest.Log)
	site, err := web.New(page.Options{
		API: &client.Client{HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.Method == "GET" && strings.HasPrefix(r.URL.Path, "/v1/invoices") {
				panic("a defect")
			}
			return n.node.api.Within().RoundTrip(r)
		})}},
		As:  func(ctx context.Context, as page.Identity) context.Context { return serve.As(ctx, serve.Identity(as)) },
		Why: func(*model.Decision) string { panic("a defect") }, Store: n.node.store, SignIn: n.node.api.SignIn,
		LiveKey: n.node.catalog.Live, CatchUp: n.node.catalog.CatchUp, Trouble: n.node.trouble, Now: n.node.clock.Now, Wall: time.Now,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}, portal.Watcher{Counters: func(context.Context, string, map[string]string) ([]model.CounterKey, error) { panic("a defect") }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(site)
	t.Cleanup(server.Close)
	b, staff := *n.browser().enter(n, "acme"), *n.signedIn(testAdminKey)
	b.url, staff.url = server.URL, server.URL
	b.get("/portal/plan").is(200) // which asks for nothing that panics
	for path, by := range map[string]*browser{"/playground": &b, "/admin/invoices": &staff} {
		before := len(log.String())
		by.get(path).is(500).says("Something went wrong")
		oneError(t, path, log, before)
	}
	before := len(log.String())
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/portal/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := b.client.Do(r); err == nil {
		if _, err = io.ReadAll(response.Body); err == nil {
			t.Error("a stream that was cut off looks whole")
		}
		_ = response.Body.Close()
	}
	oneError(t, "the stream", log, before)
}

// A collector that panics makes a scrape fail, and ends nothing.
func TestPanicsOfMetrics(t *testing.T) {
	t.Parallel()
	log := new(pgtest.Log)
	g := newGauges(&node{log: slog.New(slog.NewTextHandler(log, nil))})
	g.node.log.Info("a defect") // which oneError looks for
	registry := prometheus.NewRegistry()
	if err := registry.Register(g); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 500 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	oneError(t, "metrics", log, 0)
}

// formsAreText sends each page a form that is no text, also the pages that need no field of it. None acts.
func (n *testNode) formsAreText(by map[string]*browser, texts ...string) {
	n.t.Helper()
	n.do("PUT", "/v1/plans/basic/draft", planOf(hourly)).is(201)
	draft := func() string { return n.do("GET", "/v1/plans/basic/draft", "").is(200).header.Get("ETag") }
	before, drafted := n.stands(), draft()
	for _, p := range listedPages(n.t) {
		if p.method != "POST" {
			continue
		}
		path := strings.Replace(p.path, "/plans/acme", "/plans/basic", 1)
		for _, text := range texts {
			for _, fields := range []url.Values{{"sure": {"yes", text}, "name": {text}}, {text: {"x"}}} {
				if a := by[p.who].post(path, fields); a.status != 422 || !strings.Contains(a.text, "UTF-8") {
					n.t.Errorf("%s with %+q: %d", path, fields, a.status)
				}
			}
		}
		// In another encoding the same could not be read.
		if a := by[p.who].send("POST", path, url.Values{"sure": {"yes"}}, "Sec-Fetch-Site: same-origin", "Content-Type: text/plain"); a.status != 400 {
			n.t.Errorf("%s with text: %d", path, a.status)
		}
	}
	if after, is := n.stands(), draft(); after != before || is != drafted {
		n.t.Errorf("a page acted:\n%s %s\n%s %s", before, drafted, after, is)
	}
	by["staff"].get("/admin").is(200)
	by["customer"].get("/portal").is(200)
}

// What is no text is a page of its own, wherever it is, and never a defect.
func TestPagesTakeTextOnly(t *testing.T) {
	t.Parallel()
	n := start(t, "")
	n.setUp(hourly)
	b, staff := n.browser().enter(n, "acme"), n.signedIn(testAdminKey)
	const bad, nul = "a\xffb", "a\x00b"
	n.formsAreText(map[string]*browser{"anyone": staff, "staff": staff, "customer": b}, bad, nul)
	for _, text := range []string{bad, nul, "\xed\xa0\x80"} {
		escaped := url.QueryEscape(text)
		for path, by := range map[string]*browser{
			"/playground?limit=" + escaped: b, "/playground?" + escaped + "=1": b, "/portal?attr.ip=" + escaped: b, "/portal/usage?meter=" + escaped: b,
			"/portal/usage.csv?meter=" + escaped: b, "/portal/invoices/" + escaped: b, "/portal/enter/" + escaped: b, "/portal/" + escaped: b,
			"/admin/customers?prefix=" + escaped: staff, "/admin/customers/" + escaped: staff, "/admin/audit?actor=" + escaped: staff,
			"/admin/plans/" + escaped: staff, "/admin/invoices?customer=" + escaped: staff, "/admin/sign-in?to=" + escaped: staff,
			"/admin/invoices?cursor=" + escaped: staff,
		} {
			by.get(path).is(422).says("UTF-8")
		}
		if text != nul { // which no header can have
			n.browser().send("GET", "/portal", nil, "Cookie: portal="+text).is(401)
		}
	}
	b.post("/portal/enter/x?y=%ff", nil).is(422)
	if strings.Contains(n.log.String(), "level=ERROR") {
		t.Error("an ERROR was logged")
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }
