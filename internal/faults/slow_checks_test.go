package faults

import (
	"fmt"
	"net/http"
	"slices"
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
		return charged
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
	metrics, _ := send(s.client, request{http.MethodGet, "/metrics", "", ""}, "http://"+s.node.at)
	if counted := "\nquotad_hits_total{outcome=\"refused_degraded\"} "; !strings.Contains(string(metrics.raw), counted) ||
		strings.Contains(string(metrics.raw), counted+"0\n") {
		s.t.Errorf("%s: no metric counts the hits that were refused", what)
	}
	if s.faults++; in != fewUnits-1 {
		s.t.Errorf("%s: %d hits were let in where 1 of %d units is used, and %d refused", what, in, fewUnits, refused)
	}
}

// few hits on a small limit.
func (s *slow) few(customer int) (answer, error) {
	return send(s.client, request{http.MethodPost, "/v1/hits", fmt.Sprintf(`{"customer":"few-%d","meter":"calls"}`, customer), ""}, "http://"+s.node.at)
}

// charged is the outcome of a hit that the database knows.
const charged = "charged"

// outcome is what a caller heard.
func (h *slowHit) outcome() string {
	switch {
	case h.err != nil:
		return h.err.Error()
	case h.a.status == http.StatusOK && h.a.Degraded:
		return "degraded"
	case h.a.status == http.StatusOK:
		return charged
	}
	return fmt.Sprintf("%d %s", h.a.status, h.a.Type)
}

// logged: the log says once that it begins, and once that it ends.
func (s *slow) logged(w *slowWay, before string, at slowTimes) {
	s.t.Helper()
	s.mu.Lock()
	// Hits on sessions that are silent wait always.
	stalled := w.passing || s.stalls(at) || s.stalled(at.ended, at.late, slowWithin*9/10)
	s.mu.Unlock()
	first := s.faults == 1 && !w.passing
	count := func() (opened, closed int) {
		return s.said(before, "the database is too slow"), s.said(before, "the database commits in time again")
	}
	if first {
		testkit.Eventually(s.t, w.what+": the log says so", func() bool { opened, closed := count(); return opened > 0 && closed > 0 })
	}
	// The log has a budget: of what comes again within a minute it may have no line.
	most := 1
	if w.passing {
		most = 0
	}
	if opened, closed := count(); (isLong() || !stalled) && (opened > most || closed > most) {
		s.t.Errorf("%s: the log says %d times that it begins, and %d times that it ends", w.what, opened, closed)
	}
}

// slowTimes are when a way began, was known, was about to end, had ended, was known to have, and when it
// was judged.
type slowTimes struct{ began, known, ending, ended, recovered, late time.Time }

// stalls reports whether the machine stalled, once the node knew of the outage or of its end. A tenth of
// what makes an outage is enough: what stalls with the hit, such as a session that is opened, may tell
// other hits something else. Without such a hit none may hear it. Hits that waited when the outage was over
// count, too. mu is held.
func (s *slow) stalls(at slowTimes) bool {
	inFlight := func(h slowHit) bool {
		return h.sent.Before(at.recovered) && h.sent.Add(h.took).After(at.recovered) && h.took > slowWithin/10
	}
	return s.stalled(at.known, at.ending, slowWithin/10) || s.stalled(at.recovered, at.late, slowWithin/10) || slices.ContainsFunc(s.hits, inFlight)
}

// stalled reports whether a hit that was sent and answered between two instants waited for a time. mu is
// held.
func (s *slow) stalled(after, before time.Time, waited time.Duration) bool {
	return slices.ContainsFunc(s.hits, func(h slowHit) bool {
		return h.sent.After(after) && h.sent.Add(h.took).Before(before) && h.took > waited
	})
}

// judge holds what callers heard against what they are to hear.
func (s *slow) judge(w *slowWay, at slowTimes) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	settled := map[bool][]time.Duration{} // how long those took that were sent once the node knew, by slowHit.deny
	told := map[string]int{}
	longest, wrong := time.Duration(0), 0
	stalls := s.stalls(at)
	for _, h := range s.hits {
		switch {
		case h.sent.Before(at.began) || h.sent.After(at.late):
		case h.sent.Before(at.ended):
			longest = max(longest, h.took)
			if h.sent.Before(at.known) {
				told["early "+h.outcome()]++
				continue
			}
			if h.sent.After(at.ending) || !isLong() && !h.sent.Add(h.took).Before(at.ending) {
				continue // it ended before or after that
			}
			settled[h.deny] = append(settled[h.deny], h.took)
			told[h.outcome()]++
			if h.outcome() != w.wants(&h) && (isLong() || !stalls) {
				wrong++
			}
		case h.sent.After(at.recovered):
			told["at the end "+h.outcome()]++
			if h.outcome() != charged && (isLong() || !stalls) {
				s.t.Errorf("%s: %s after the end: %s, %s %v", w.what, h.sent.Sub(at.ended), h.outcome(), h.a.raw, h.err)
			}
		default:
			told["after "+h.outcome()]++
			longest = max(longest, h.took)
		}
	}
	took := slices.Sorted(slices.Values(slices.Concat(settled[false], settled[true])))
	p99 := took[len(took)*99/100]
	if stalls {
		told["some waited"]++
	}
	s.t.Logf("%s: slowest %s, p99 from %s on %s, %v", w.what, longest.Round(time.Millisecond), at.known.Sub(at.began), p99.Round(time.Microsecond), told)
	if isLong() && longest > longSizes.answered {
		s.t.Errorf("%s: an answer took %s", w.what, longest)
	}
	if wrong > 0 {
		s.t.Errorf("%s: %d of %d hits heard something else: %v", w.what, wrong, len(took), told)
	}
	for deny, took := range settled {
		slices.Sort(took)
		if half := took[len(took)/2]; half > slowWithin/2 {
			s.t.Errorf("%s: half of the hits waited for more than %s, once the node knew, on_outage deny: %t", w.what, half, deny)
		}
	}
	if isLong() && p99 > longSizes.p99 {
		s.t.Errorf("%s: p99 is %s", w.what, p99)
	}
}

// settle compares what is charged with what callers heard.
func (s *slow) settle() {
	s.t.Helper()
	s.rest()
	lines := slices.Collect(strings.Lines(s.node.log.String()))
	if most := mostInAMinute(s.t, lines); most > outageLines {
		s.t.Errorf("%d lines were logged in a minute:\n%s", most, strings.Join(lines, ""))
	}
	told, unknown := int64(slowCustomers), int64(0) // each of the small limits had one
	for _, h := range s.hits {
		switch {
		case h.err != nil:
			s.t.Errorf("a hit got no answer: %v", h.err)
		case h.outcome() == charged:
			told++
		case h.outcome() == "503 /problems/outcome-unknown":
			unknown++
		}
	}
	units := pgtest.Query[int64](s.t, s.server.URL(), `SELECT sum(total)::bigint FROM counters JOIN customers ON id = customer WHERE key <> 'other'`)
	s.t.Logf("told %d, charged %d, unknown %d", told, units, unknown)
	if units < told || units > told+unknown {
		s.t.Errorf("%d units are charged, where callers were told of %d, and of %d nobody knows", units, told, unknown)
	}
}
