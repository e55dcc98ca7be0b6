package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"quotad/internal/testkit"
)

// request is what is sent, the same each time.
type request struct {
	method, path, body string
	idempotencyKey     string // in the header; empty: there is none
}

// answer is a response, read whole.
type answer struct {
	status int
	raw    []byte
	content
}

// content has the members of all the answers that clients read.
type content struct {
	Type        string      `json:"type"`
	Status      int         `json:"status"`
	Allowed     *bool       `json:"allowed"`
	Replayed    *bool       `json:"replayed"`
	Degraded    bool        `json:"degraded"`
	At          string      `json:"at"`
	ID          string      `json:"id"`
	Cost        int64       `json:"cost"`
	Refunded    *int64      `json:"refunded"`
	Reserved    *int64      `json:"reserved"`
	Late        *bool       `json:"late"`
	Committable *int64      `json:"committable"`
	Results     []content   `json:"results"`
	Limits      []limitView `json:"limits"`
	Meters      []meterView `json:"meters"`
	Points      []usageView `json:"points"`
}

type limitView struct {
	Name     string `json:"name"`
	Meter    string `json:"meter"`
	Limit    int64  `json:"limit"`
	Used     int64  `json:"used"`
	Reserved int64  `json:"reserved"`
}

type meterView struct {
	Meter string `json:"meter"`
	Used  int64  `json:"used"`
}

type usageView struct {
	Admitted int64 `json:"admitted"`
}

// admitted reports whether a decision let its hit in.
func (c *content) admitted() bool { return c.Allowed != nil && *c.Allowed }

// gist is what every answer to the same request must have in common, once it was done.
func (c *content) gist() string {
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	return fmt.Sprintf("id %q, cost %d, refunded %s, reserved %s", c.ID, c.Cost, number(c.Refunded), number(c.Reserved))
}

func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: testkit.Patience}
}

// send sends a request once.
func send(client *http.Client, r request, url string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, url+r.path, body)
	if err != nil {
		return a, err
	}
	out.GetBody = nil // or the client would send it again by itself
	out.Header.Set("Authorization", "Bearer "+adminKey)
	if r.body != "" {
		out.Header.Set("Content-Type", "application/json")
		if r.path == "/v1/imports" {
			out.Header.Set("Content-Type", "application/x-ndjson")
		}
	}
	if r.idempotencyKey != "" {
		out.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	response, err := client.Do(out)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status = response.StatusCode
	if a.raw, err = io.ReadAll(response.Body); err != nil {
		return a, err
	}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(a.raw, &a.content); err != nil {
			return a, fmt.Errorf("%w: %w", errNotJSON, err)
		}
	}
	return a, nil
}

var errNotJSON = errors.New("the answer is whole and is not JSON")

// write sends an admin's request until it is answered by success. It may have been done before, when a
// node that stalled could not say so.
func write(t testing.TB, client *http.Client, r request, url string) {
	t.Helper()
	testkit.Eventually(t, r.method+" "+r.path, func() bool {
		a, err := send(client, r, url)
		if again, _ := a.unanswered(); err == nil && !again && a.status/100 != 2 {
			t.Fatalf("%s %s: %d %s", r.method, r.path, a.status, a.raw)
		}
		return err == nil && a.status/100 == 2
	})
}

// neverSent reports whether the request cannot have reached anybody.
func neverSent(err error) bool {
	var broken *net.OpError
	return errors.As(err, &broken) && broken.Op == "dial"
}

// undone are the types of problems that say: nothing was done, send it again.
var undone = map[string]bool{
	"/problems/too-busy": true, "/problems/database-unavailable": true, "/problems/stopping": true,
	"/problems/not-ready": true, "/problems/under-way": true,
}

// unanswered says of an answer, or of a result in one, whether it is to be asked for
// again, and whether what was asked for may have been done, or may still be.
func (c *content) unanswered() (again, doubt bool) {
	if c.Type == "/problems/outcome-unknown" {
		return true, true
	}
	return undone[c.Type], false
}
