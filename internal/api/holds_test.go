package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotad/internal/postgres"
	"quotad/internal/testkit"
)

// manyHolds gives acme 20 limits on its meter and 10,000 open reservations of one unit each.
func (n *node) manyHolds() {
	n.t.Helper()
	var limits []string
	for i := range 20 {
		limits = append(limits, fmt.Sprintf(`{"name":"x%d","meter":"requests","algorithm":%q,"limit":100000,"window":"%dh"}`,
			i, []string{"token_bucket", "sliding_window", "fixed_window"}[i%3], 8760+i)) // a bucket gets a unit in five minutes
	}
	n.setUp(strings.Join(limits, ","))
	n.held(10_000, 24*time.Hour)
	ctx := testkit.Context(n.t)
	conn, err := postgres.Connect(ctx, n.database, nil)
	check(n.t, err)
	defer func() { check(n.t, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, `UPDATE holds SET cost = 1`)
	check(n.t, err)
	_, err = conn.Exec(ctx, `INSERT INTO holds (shard, customer, meter, attribute, expires_at, at, cost, key, limits)
		SELECT shard, customer, meter, attribute, expires_at + n * 1000, at, 1, md5(n::text)::uuid, limits FROM holds, generate_series(1, 9999) n`)
	check(n.t, err)
}

// text sends a request with the admin key and returns all of its answer, and how long that took.
func (n *node) text(method, path, body string) (status int, text string, took time.Duration) {
	n.t.Helper()
	r, err := http.NewRequestWithContext(testkit.Context(n.t), method, n.url+path, strings.NewReader(body))
	check(n.t, err)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	check(n.t, err)
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	check(n.t, err)
	return response.StatusCode, string(all), time.Since(began)
}

// TestManyHoldsAreReadOnce: a customer has 10,000 open reservations and 20 limits. A batch of 1,000
// hits on it takes some 50 ms, and the quota endpoint less. To look at each hold for each limit of
// each hit took 15 s.
func TestManyHoldsAreReadOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.manyHolds()
	hits := `{"hits":[` + strings.Repeat(`{"customer":"acme","meter":"requests"},`, 999) + `{"customer":"acme","meter":"requests"}]}`
	const most = 3 * time.Second
	status, text, took := n.text("POST", "/v1/hits/batch", hits)
	if admitted := strings.Count(text, `"allowed":true`); status != http.StatusOK || admitted != 1000 {
		t.Errorf("a batch: %d, %d hits admitted, in %s", status, admitted, took)
	}
	t.Log("a batch took", took)
	testkit.AtMost(t, "a batch", took, most)
	status, text, took = n.text("GET", "/v1/customers/acme/quota", "")
	if all := strings.Count(text, `"reserved":10000`); status != http.StatusOK || all != 20 {
		t.Errorf("the quota: %d, %d limits tell of all that is held, in %s: %s", status, all, took, text)
	}
	t.Log("the quota took", took)
	testkit.AtMost(t, "the quota", took, most)
}
