package main

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// parse reads a request as a server does.
func parse(t *testing.T, text []byte) (path, body string) {
	t.Helper()
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(text))))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	got, err := io.ReadAll(request.Body)
	if err != nil {
		t.Fatal(err)
	}
	if request.Header.Get("Authorization") != "Bearer secret" || request.Method != "POST" {
		t.Errorf("%s %v", request.Method, request.Header)
	}
	return request.URL.Path, string(got)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row        row
		path, body string
	}{
		{row{set: "two", load: load{pick: uniform}}, "/v1/hits", `{"customer":"two-10000007","meter":"requests"}`},
		{row{set: "hot"}, "/v1/hits", `{"customer":"hot-10000000","meter":"requests"}`},
		{row{set: "two", load: load{pick: zipf, ids: true}}, "/v1/hits", `{"customer":"two-10000007","meter":"requests","id":"run-1000000000003"}`},
		{row{set: "per", load: load{pick: uniform, values: 1000}}, "/v1/hits", `{"customer":"per-10000000","meter":"requests","attributes":{"ip":"10000007"}}`},
		{row{set: "two", load: load{pick: uniform, reserve: true}}, "/v1/reservations", `{"customer":"two-10000007","meter":"requests","ttl_ms":60000}`},
		{
			row{set: "hot", load: load{batch: 2}},
			"/v1/hits/batch",
			`{"hits":[{"customer":"hot-10000000","meter":"requests"},{"customer":"hot-10000000","meter":"requests"}]}`,
		},
	} {
		made := templateOf(&c.row, "secret", "run")
		path, body := parse(t, made.append(nil, 7, 3))
		if path != c.path || body != c.body {
			t.Errorf("%s %s\nnot %s %s", path, body, c.path, c.body)
		}
	}
}

// A batch over many customers is on many, and not always on the same.
func TestBatchesOverManyCustomers(t *testing.T) {
	t.Parallel()
	made := templateOf(&row{set: "two", load: load{batch: 100, spread: true}}, "secret", "run")
	if len(made.list) != batchRequests || made.list[0] == made.list[1] {
		t.Errorf("%d requests", len(made.list))
	}
	_, body := parse(t, []byte(made.list[0]))
	seen := map[string]bool{}
	for _, hit := range strings.SplitAfter(body, "customer")[1:] {
		seen[hit] = true
	}
	if len(seen) < 90 {
		t.Errorf("only %d customers in 100 hits", len(seen))
	}
}

func TestChooser(t *testing.T) {
	t.Parallel()
	for _, pick := range []pick{uniform, zipf} {
		made := template{count: 1000, pick: pick}
		choose, again := made.chooser(5), made.chooser(5)
		counts := make([]int, made.count)
		for range 100_000 {
			n := choose()
			if n != again() {
				t.Fatal("the same seed chooses otherwise")
			}
			counts[n]++
		}
		switch share := counts[0]; {
		case pick == uniform && (share < 50 || share > 200):
			t.Errorf("uniform: the first of 1000 had %d of 100,000", share)
		case pick == zipf && (share < 15_000 || counts[1]*3 < share):
			// By the law, 1 : 2^-1.1, of a sum of some 5.6.
			t.Errorf("zipf: the first had %d of 100,000, the second %d", share, counts[1])
		}
	}
}

func TestSingle(t *testing.T) {
	t.Parallel()
	batch := &row{name: "b", set: "two", load: load{batch: 100, spread: true}, conns: batchConns, want: admitted}
	if got := batch.single(); got.hits() != 1 || got.connections() != manyConns || got.set != "two" {
		t.Errorf("%+v", got)
	}
	if plain := mainRowOf(); plain.single() != plain {
		t.Error("a row of single hits is its own")
	}
}
