package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"quotad/internal/api/hits"
	"quotad/internal/quota/queue"
)

// A member that is there twice in one hit is that hit's fault, as every other.
func TestFaultsOfABatchAreTheHitsOwn(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	const good = `{"customer":"acme","meter":"requests"}`
	for bad, status := range map[string]float64{
		`{"customer":"acme","customer":"acme","meter":"requests"}`:              422,
		`{"customer":"acme","meter":"requests","attributes":{"a":"1","a":"2"}}`: 422,
		`{"customer":"acme","meter":"requests","attributes":{"up_to":null}}`:    422,
		`null`: 422, `[]`: 422, `"x"`: 422, `{}`: 422, `{"customer":"none","meter":"requests"}`: 404,
	} {
		got := n.want(200, "POST", "/v1/hits/batch", ` { "hits" : [ `+good+` , `+bad+` ] } `)
		results := got.json["results"].([]any)
		if len(results) != 2 || results[1].(map[string]any)["status"] != status {
			t.Errorf("%s: %s", bad, got.text)
		}
	}
	for body, status := range map[string]int{
		`{"hits":[],"hits":[]}`: 422, `{"hits":[],"atomic":false,"atomic":false}`: 422, `{"atomic":false}`: 422,
		`[]`: 422, `null`: 422, `{"hits":7}`: 422, `{"hits":[` + good + `]`: 400, `{"hits":[` + good + `]} x`: 400, `{"hits":[` + good + ` 7]}`: 400,
		`{"hits":[],"hit":[]`: 400, `{"hits":["` + "\xff" + `"]}`: 400, `{"hits":[{"a":01}]}`: 400, ``: 400, `{"hits":[],"atomic":nul}`: 400,
		`{"hits":[],"atomic":false}`: 200, `{"atomic":false,"hits":[]}`: 200,
	} {
		if got := n.do("POST", "/v1/hits/batch", body, "Content-Type", "application/json"); got.status != status {
			t.Errorf("%s: %d, not %d: %s", body, got.status, status, got.text)
		}
	}
}

// The problems of a batch repeat little of it, however wrong it is.
func TestBatchOfFaultsIsShort(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	var attributes []string
	for i := range 16 {
		attributes = append(attributes, fmt.Sprintf(`"%d !":""`, i))
	}
	hit := `{"attributes":{` + strings.Join(attributes, ",") + `},"cost":-1},`
	body := `{"hits":[` + strings.Repeat(hit, 999) + `7]}`
	got := n.want(200, "POST", "/v1/hits/batch", body)
	results := got.json["results"].([]any)
	first := results[0].(map[string]any)
	if len(results) != 1000 || len(first["errors"].([]any)) != hits.MaxHitErrors || !strings.HasSuffix(first["detail"].(string), " more") {
		t.Errorf("%d results, the first %v", len(results), first)
	}
	if len(got.text) > 2<<20 {
		t.Errorf("%d bytes are answered with %d", len(body), len(got.text))
	}
	hit = `{"customer":"acme","meter":"requests","attributes":{`
	for i := range 5000 {
		hit += fmt.Sprintf(`"%d!":"",`, i)
	}
	got = n.want(422, "POST", "/v1/hits", hit+`"z":""}}`)
	if len(got.text) > 1000 {
		t.Errorf("%d bytes: %.1000s", len(got.text), got.text)
	}
}

// A large answer goes out in pieces, and is whole.
func TestLargeBatchAnswer(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	var limits []string
	for i := range 20 {
		limits = append(limits, fmt.Sprintf(`{"name":"%0200d","meter":"requests","algorithm":"fixed_window","limit":600,"window":"365d"}`, i))
	}
	n.setUp(strings.Join(limits, ","))
	body := `{"hits":[` + strings.Repeat(`{"customer":"acme","meter":"requests"},`, 999) + `{"customer":"acme","meter":"requests"}]}`
	got := n.want(200, "POST", "/v1/hits/batch", body)
	if len(got.text) < 5<<20 {
		t.Fatalf("only %d bytes", len(got.text))
	}
	admitted := 0
	for _, r := range got.json["results"].([]any) {
		if r := r.(map[string]any); r["allowed"] == true && len(r["limits"].([]any)) == 20 {
			admitted++
		}
	}
	if admitted != 600 {
		t.Errorf("%d are admitted", admitted)
	}
	n.want(429, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
}

// Beyond those that a node works on, batches are told to come again; single hits go on.
func TestBatchesAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	for i := range hits.MaxBatches {
		check(t, n.server.hits.Batches.Take(queue.SenderID(strconv.Itoa(i))))
	}
	got := n.want(503, "POST", "/v1/hits/batch", `{"hits":[]}`)
	if got.header.Get("Retry-After") != "1" || got.json["type"] != "/problems/too-busy" {
		t.Errorf("%v %s", got.header, got.text)
	}
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.server.hits.Batches.GiveBack("0")
	for range 2 {
		n.want(200, "POST", "/v1/hits/batch", `{"hits":[]}`)
		n.want(422, "POST", "/v1/hits/batch", `{"hits":7}`)
	}
}
