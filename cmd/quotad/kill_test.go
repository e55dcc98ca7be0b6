package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// hammer is clients that hit one customer each, through deaths of quotad, and what they
// know of the outcome: units acknowledged, and units whose answer was lost.
type hammer struct {
	url                   atomic.Pointer[string] // of the quotad that lives now
	client                *http.Client
	acknowledged, unknown []int64 // by customer, each written by its one client
	answers, lost         atomic.Int64
}

// hit sends one hit and books its outcome.
func (h *hammer) hit(ctx context.Context, customer int, cost int64) error {
	body := fmt.Sprintf(`{"customer":"c%d","meter":"requests","cost":%d}`, customer, cost)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, *h.url.Load()+"/v1/hits", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.GetBody = nil // or the client would send it again by itself
	request.Header.Set("Authorization", "Bearer "+testAdminKey)
	request.Header.Set("Content-Type", "application/json")
	response, err := h.client.Do(request)
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return nil // nobody was there: nothing was sent
	case err != nil:
		h.unknown[customer] += cost
		h.lost.Add(1)
		return nil
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil && response.StatusCode != http.StatusOK {
		return nil // refused or unavailable, whatever the rest said
	}
	switch response.StatusCode {
	case http.StatusOK:
		h.acknowledged[customer] += cost
		h.answers.Add(1)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.answers.Add(1)
	default:
		return fmt.Errorf("status %d", response.StatusCode)
	}
	return nil
}

// testKilledUnderHits kills quotad by SIGKILL in the middle of load, over and over. What
// was acknowledged is charged, what was charged was acknowledged or unknown, usage says
// the same, and the limit that half of the customers reach holds.
func testKilledUnderHits(t *testing.T, blows int) {
	t.Helper()
	const customers, limit = 64, 500
	server := pgtest.Server(t)
	flags := []string{"--database-url=" + server.URL(), "--admin-key=" + testAdminKey}
	dir := dataDir(t)
	p := launch(t, dir, flags...)
	admin := p.as(testAdminKey)
	admin.setUp(fixed("l", 1_000_000, `"on_outage":"deny"`))
	admin.do("PUT", "/v1/plans/low", planOf(fixed("l", limit, `"on_outage":"deny"`))).is(201)
	h := &hammer{client: newClient(), acknowledged: make([]int64, customers), unknown: make([]int64, customers)}
	h.url.Store(&p.url)
	for c := range customers {
		plan := []string{"low", "basic"}[c%2]
		admin.do("PUT", fmt.Sprintf("/v1/customers/c%d", c), `{"name":"C","timezone":"UTC","plan":"`+plan+`"}`).is(201)
	}
	ctx, stop := context.WithCancel(testkit.Context(t))
	defer stop()
	var clients sync.WaitGroup
	errs, seed := make([]error, customers), testkit.Seed(t)
	for c := range customers {
		r := rand.New(rand.NewPCG(seed, uint64(c)))
		clients.Go(func() {
			for ctx.Err() == nil && errs[c] == nil {
				errs[c] = h.hit(context.WithoutCancel(ctx), c, 1+r.Int64N(5))
			}
		})
	}
	for range blows {
		goal := h.answers.Load() + 500
		testkit.Eventually(t, "hits are answered", func() bool { return h.answers.Load() >= goal })
		if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.waitEnd()
		p = launch(t, dir, flags...)
		h.url.Store(&p.url)
	}
	stop()
	clients.Wait()
	h.client.CloseIdleConnections()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d answers, %d unknown outcomes in flight", h.answers.Load(), h.lost.Load())
	if h.lost.Load() == 0 {
		t.Error("no outcome was ever lost: this run proves nothing")
	}
	h.check(t, p.as(testAdminKey), limit)
}

// check compares what the clients know with what quotad says now.
func (h *hammer) check(t *testing.T, admin *testNode, limit int64) {
	t.Helper()
	for c := range h.acknowledged {
		stands := admin.do("GET", fmt.Sprintf("/v1/customers/c%d/quota", c), "").is(200)
		charged, low, high := stands.num("limits.0.used"), h.acknowledged[c], h.acknowledged[c]+h.unknown[c]
		if charged < low || charged > high {
			t.Errorf("c%d: %d units charged, %d acknowledged, %d unknown", c, charged, low, high-low)
		}
		if used := stands.num("meters.0.used"); used != charged {
			t.Errorf("c%d: %d units charged, %d used in the period", c, charged, used)
		}
		if c%2 == 0 && charged > limit {
			t.Errorf("c%d: %d units charged of a limit of %d", c, charged, limit)
		}
	}
}
