package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"quotad/internal/api/hits"
	"quotad/internal/quota"
	"quotad/internal/quota/queue"
	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

const metricsOfShares = "quotad_batches_over_share_total"

// own is the id of the admin's key.
func (n *node) own() (id queue.SenderID) {
	n.t.Helper()
	for _, k := range n.want(200, "GET", "/v1/keys", "").json["items"].([]any) {
		if k := k.(map[string]any); k["name"] == "test" {
			id = queue.SenderID(k["id"].(string))
		}
	}
	return id
}

// One key has half of the places for batches at most, and another finds one.
func TestBatchesOfOneKeyAreBounded(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	other := n.key("backend")
	own := n.own()
	for range hits.MaxOwnBatches {
		check(t, n.server.hits.Batches.Take(own))
	}
	const body = `{"hits":[{"customer":"acme","meter":"requests","cost":0}]}`
	got := n.want(503, "POST", "/v1/hits/batch", body)
	if got.header.Get("Retry-After") != "1" || got.json["type"] != "/problems/too-busy" || !strings.Contains(got.text, fmt.Sprint(hits.MaxOwnBatches)) {
		t.Errorf("%v %s", got.header, got.text)
	}
	n.want(200, "POST", "/v1/hits/batch", body, "Authorization", other)
	n.want(200, "POST", "/v1/hits", `{"customer":"acme","meter":"requests"}`)
	n.server.hits.Batches.GiveBack(own)
	for range 2 {
		n.want(200, "POST", "/v1/hits/batch", body)
	}
	if text := n.want(200, "GET", "/metrics", "").text; !strings.Contains(text, "\n"+metricsOfShares+" 1\n") {
		t.Errorf("the metric does not count it: %s", text)
	}
	for range hits.MaxOwnBatches - 1 {
		n.server.hits.Batches.GiveBack(own)
	}
	if taken, by := n.server.hits.Batches.Taken(); taken != 0 || by != 0 {
		t.Errorf("%d places are taken, by %d", taken, by)
	}
}

// Beyond a key's share of the queue a hit is 503 with Retry-After, and another key's hit waits
// and is decided.
func TestHitsOverTheShareAreTooBusy(t *testing.T) {
	n := newNodeOn(t, pgtest.NewDatabase(t), func(o *quota.Options) { o.MaxQueue = 4 })
	n.setUp(`{"name":"daily","meter":"requests","algorithm":"fixed_window","limit":1000,"window":"1d"}`)
	other := n.key("backend")
	const body = `{"customer":"acme","meter":"requests"}`
	n.want(200, "POST", "/v1/hits", body)
	ctx := testkit.Context(t)
	conn, err := pgx.Connect(ctx, n.database)
	check(t, err)
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	check(t, err)
	_, err = tx.Exec(ctx, "SELECT FROM counters FOR UPDATE")
	check(t, err)
	var hits sync.WaitGroup
	hit := func(headers ...string) {
		hits.Go(func() {
			if got := n.do("POST", "/v1/hits", body, headers...); got.status != 200 {
				t.Errorf("a hit that waited: %d %s", got.status, got.text)
			}
		})
	}
	batches, queued := n.server.Engine.Stats().Batches, func() int64 { return n.server.Engine.Stats().Queued }
	hit()
	testkit.Eventually(t, "the lane waits for the row", func() bool { return n.server.Engine.Stats().Batches > batches && queued() == 0 })
	for i := range int64(2) {
		hit()
		testkit.Eventually(t, "a hit waits for the lane", func() bool { return queued() == i+1 })
	}
	got := n.want(503, "POST", "/v1/hits", body)
	if got.header.Get("Retry-After") != "1" || got.json["type"] != "/problems/too-busy" || !strings.Contains(got.text, "this API key") {
		t.Errorf("%v %s", got.header, got.text)
	}
	hit("Authorization", other)
	testkit.Eventually(t, "another key's hit waits", func() bool { return queued() == 3 })
	check(t, tx.Rollback(ctx))
	hits.Wait()
	if over := n.server.Engine.Stats().Over; over != 1 {
		t.Errorf("%d hits are counted as over their share", over)
	}
}

// Twenty connections of batches of one key are not another key's failure.
func TestBatchesOfOneKeyFailNoOther(t *testing.T) {
	n := newNode(t)
	n.setUp(`{"name":"daily","meter":"requests","algorithm":"token_bucket","limit":1000000000,"window":"1d"}`)
	busy, other := n.key("backend"), n.key("backend")
	const customers = 50
	var all []string
	for i := range customers {
		n.want(201, "PUT", fmt.Sprintf("/v1/customers/c%d", i), `{"name":"C","plan":"pro"}`)
		all = append(all, fmt.Sprintf(`{"customer":"c%d","meter":"requests"}`, i))
	}
	batch := `{"hits":[` + strings.Repeat(strings.Join(all, ",")+",", 1000/customers-1) + strings.Join(all, ",") + `]}`
	var ended atomic.Bool
	var load sync.WaitGroup
	var batches atomic.Int64
	for range 20 {
		load.Go(func() {
			for !ended.Load() {
				status, err := n.post("/v1/hits/batch", batch, busy)
				if batches.Add(1); err != nil || status != 200 && status != 503 {
					t.Errorf("a batch: %d, %v", status, err)
				}
			}
		})
	}
	testkit.Eventually(t, "the busy key is over its share", func() bool { return n.server.Engine.Stats().Over > 0 })
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for i := range 50 {
				if status, err := n.post("/v1/hits", `{"customer":"acme","meter":"requests"}`, other); err != nil || status != 200 {
					t.Errorf("hit %d of another key: %d, %v", i, status, err)
				}
			}
		})
	}
	others.Wait()
	ended.Store(true)
	load.Wait()
	t.Logf("beside %d batches", batches.Load())
}

// post sends a request and throws its answer away: to hold each large one against the document
// would take longer than to make it.
func (n *node) post(path, body, key string) (status int, err error) {
	r, err := http.NewRequestWithContext(testkit.Context(n.t), http.MethodPost, n.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
