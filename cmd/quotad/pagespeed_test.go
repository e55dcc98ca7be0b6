package main

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"quotad/internal/testkit"
)

// A first visit takes at most 100 KB, and a page after that 15 KB: browsers keep the assets.
func TestPagesAreLight(t *testing.T) {
	n := start(t, "", "--brand-name=Northwind")
	n.northwind()
	b := n.browser().enter(n, "acme")
	for _, path := range []string{"/portal", "/portal/usage", "/portal/plan", "/portal/invoices", "/playground"} {
		packed := b.send("GET", path, nil, "Accept-Encoding: gzip").is(200)
		if packed.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", path)
		}
		first := len(packed.text)
		if first > 15_000 {
			t.Errorf("%s has %d bytes", path, first)
		}
		loaded := map[string]bool{}
		for _, asset := range regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(b.get(path).text, -1) {
			if loaded[asset[1]] {
				continue
			}
			loaded[asset[1]] = true
			file := b.send("GET", asset[1], nil, "Accept-Encoding: gzip").is(200)
			first += len(file.text)
			if font := regexp.MustCompile(`url\((inter[^)]+)\)`).FindStringSubmatch(b.get(asset[1]).text); font != nil {
				first += len(b.get("/assets/" + font[1]).is(200).text)
			}
		}
		if first > 100_000 || len(loaded) < 3 {
			t.Errorf("%s: a first visit takes %d bytes, %d files", path, first, len(loaded))
		}
		t.Logf("%s: %d bytes, with assets %d", path, len(packed.text), first)
	}
}

// TestPagesAreFast says how long pages take; in its long form it fails where something is far off.
func TestPagesAreFast(t *testing.T) {
	n := start(t, "")
	n.northwind()
	b := n.browser().enter(n, "acme")
	for _, path := range []string{"/portal", "/portal/usage", "/portal/plan", "/portal/invoices"} {
		var took []time.Duration
		for range 60 {
			began := time.Now()
			b.get(path).is(200)
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		t.Logf("%s: p50 %s, p95 %s", path, took[30], took[57])
		testkit.AtMost(t, path, took[30], time.Second)
	}
}
