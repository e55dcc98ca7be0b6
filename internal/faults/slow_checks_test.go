package faults

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// wants is what a caller is to hear once the node knows that the database is slow.
func (w *slowWay) wants(h *slowHit) string {
	switch {
	case w.passing:
		return "charged"
	case h.deny:
		return "503 /problems/database-unavailable"
	}
	return "degraded"
}

// said is how often the log said something since it was before.
func (s *slow) said(before, what string) int {
	return strings.Count(s.node.log.String(), what) - strings.Count(before, what)
}

// degraded: the node says that it is.
func (s *slow) degraded(what string) {
	if !s.saysDegraded() {
		s.t.Errorf("%s: /readyz does not say it", what)
	}
	testkit.Eventually(s.t, what+": metrics say that the node is degraded, and why", func() bool {
		metrics, _ := send(s.client, request{http.MethodGet, "/metrics", "", ""}, "http://"+s.node.at)
		text := string(metrics.raw)
		return strings.Contains(text, "\nquotad_degraded 1\n") && !strings.Contains(text, "quotad_degraded_seconds_total{reason=\"slow\"} 0\n")
	})
}

// saysDegraded reports whether the node says that its database is too slow.
func (s *slow) saysDegraded() bool {
	// The answer is not JSON as send reads it, and so its error says nothing.
	state, _ := send(s.client, request{http.MethodGet, "/readyz", "", ""}, "http://"+s.node.at)
	return strings.Contains(string(state.raw), `"degraded","reason":"the database is too slow: on_outage`)
}

// others are requests without on_outage. In an outage each is a 503, in a long run in time. Otherwise each is
// done, perhaps when it is sent again: the machine may stall.
func (s *slow) others(what string, outage bool) {
	var all sync.WaitGroup
	for path, body := range map[string]string{
		"/v1/refunds":                     `{"customer":"other","meter":"calls","cost":1,"id":"%s"}`,
		"/v1/reservations":                `{"customer":"other","meter":"calls","cost":1,"ttl_ms":60000,"id":"%s"}`,
		"/v1/customers/other/adjustments": `{"meter":"calls","cost":1,"reason":"r","id":"%s"}`,
		"/v1/hits/batch":                  `{"atomic":true,"hits":[{"customer":"other","meter":"calls","id":"%s"}]}`,
		"/v1/imports":                     `{"customer":"other","meter":"calls","cost":1,"at":"2026-01-01T00:00:00Z","id":"%s"}` + "\n",
	} {
		all.Go(func() {
			began := time.Now()
			a, err := send(s.client, request{http.MethodPost, path, fmt.Sprintf(body, what), ""}, "http://"+s.node.at)
			took, most := time.Since(began), longSizes.answered
			if path == "/v1/imports" {
				most += time.Second // its pause after an outage
			}
			refused, done := s.outcomeOf(&a)
			for !outage && !isLong() && refused && time.Since(began) < testkit.Patience {
				a, err = send(s.client, request{http.MethodPost, path, fmt.Sprintf(body, what), ""}, "http://"+s.node.at)
				refused, done = s.outcomeOf(&a)
			}
			if outage && !refused || !outage && !done || isLong() && took > most {
				s.t.Errorf("%s: %s after %s: %d %s %v", what, path, took, a.status, a.raw, err)
			}
		})
	}
	all.Wait()
}

// outcomeOf says what became of a request. The answer of an import has the status of each line that failed,
// and has not the members that send knows.
func (*slow) outcomeOf(a *answer) (refused, done bool) {
	text := string(a.raw)
	refused = a.status == http.StatusServiceUnavailable || a.status == http.StatusOK && strings.Contains(text, `"status":503`)
	return refused, a.status/100 == 2 && !strings.Contains(text, `"status":`)
}

// exceed has a limit hold in an outage.
func (s *slow) exceed(what string) {
	in, refused := 0, 0
	for range 3 * fewUnits {
		a, err := s.few(s.faults)
		switch {
		case err == nil && a.status == http.StatusOK && a.Degraded:
			in++
		case err == nil && a.status == http.StatusTooManyRequests && a.Degraded && len(a.Limits) == 1:
			refused++
		default:
			s.t.Errorf("%s: a hit on a small limit: %d %s %v", what, a.status, a.raw, err)
		}
	}
	if s.faults++; in != fewUnits-1 {
		s.t.Errorf("%s: %d hits were let in where 1 of %d units is used, and %d refused", what, in, fewUnits, refused)
	}
}

// few hits on a small limit.
func (s *slow) few(customer int) (answer, error) {
	return send(s.client, request{http.MethodPost, "/v1/hits", fmt.Sprintf(`{"customer":"few-%d","meter":"calls"}`, customer), ""}, "http://"+s.node.at)
}

// outcome is what a caller heard.
func (h *slowHit) outcome() string {
	switch {
	case h.err != nil:
		return h.err.Error()
	case h.a.status == http.StatusOK && h.a.Degraded:
		return "degraded"
	case h.a.status == http.StatusOK:
		return "charged"
	}
	return fmt.Sprintf("%d %s", h.a.status, h.a.Type)
}

// settle compares what is charged with what callers heard.
func (s *slow) settle() {
	s.t.Helper()
	s.rest()
	told, unknown := int64(slowCustomers), int64(0) // each of the small limits had one
	for _, h := range s.hits {
		switch {
		case h.err != nil:
			s.t.Errorf("a hit got no answer: %v", h.err)
		case h.outcome() == "charged":
			told++
		case h.outcome() == "503 /problems/outcome-unknown":
			unknown++
		}
	}
	charged := pgtest.Query[int64](s.t, s.server.URL(), `SELECT sum(total)::bigint FROM counters JOIN customers ON id = customer WHERE key <> 'other'`)
	s.t.Logf("told %d, charged %d, unknown %d", told, charged, unknown)
	if charged < told || charged > told+unknown {
		s.t.Errorf("%d units are charged, where callers were told of %d, and of %d nobody knows", charged, told, unknown)
	}
}
