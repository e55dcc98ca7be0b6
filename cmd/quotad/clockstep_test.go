package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/testkit"
	"quotad/internal/testkit/pgtest"
)

// stepping is two nodes on a server whose clock steps, each under a steady load of hits.
type stepping struct {
	*testing.T
	server *pgtest.Instance
	nodes  [2]*testNode
	looked int64 // hits of blip
}

// longStep is how far the clock steps, and aside what two instants of one clock may be apart.
const (
	longStep = time.Hour
	aside    = time.Minute
)

// TestClockSteps: a step that is gone at the second measurement is used by nobody. A longer one is used
// by all nodes, and each says so. When it is undone, counters are ahead: refusals tell the wait from now
// on, and `quotad repair clock` brings the counters back, beside the load. No hit fails, and no unit is
// charged twice or given away. In the long form the clock does so again and again.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	s := &stepping{T: t, server: pgtest.Server(t, pgtest.WithClock())}
	for i := range s.nodes {
		s.nodes[i] = start(t, s.server.URL())
	}
	n := s.nodes[0]
	n.do("PUT", "/v1/meters/calls", `{"unit":"call"}`).is(201)
	n.do("PUT", "/v1/meters/requests", `{"unit":"request"}`).is(201)
	n.do("PUT", "/v1/plans/basic", planOf(
		`{"name":"wide","meter":"calls","algorithm":"fixed_window","limit":1000000000,"window":"3650d"}`,
		`{"name":"hour","meter":"requests","algorithm":"fixed_window","align":"first_hit","limit":10,"window":"1h"}`)).is(201)
	s.customer("acme")
	n.hears()
	s.nodes[1].hears()
	var sent, charged atomic.Int64
	var stops []func()
	for _, n := range s.nodes {
		counts, stop := n.flood(1, "POST", "/v1/hits", hitOf("acme", "calls", ""))
		stops = append(stops, func() {
			stop()
			counts.Range(func(status, count any) bool {
				sent.Add(count.(*atomic.Int64).Load())
				if status == 200 {
					charged.Add(count.(*atomic.Int64).Load())
				}
				return true
			})
		})
	}
	rounds := 1
	if longForm() {
		rounds = 20
	}
	for round := range rounds {
		s.blip()
		s.stepAndBack(round)
	}
	for _, stop := range stops {
		stop()
	}
	if sent.Load() != charged.Load() || charged.Load() == 0 {
		t.Errorf("of %d hits %d were charged", sent.Load(), charged.Load())
	}
	n.do("GET", "/v1/customers/acme/quota", "").is(200).has("limits.0.used", charged.Load()+s.looked)
	if code, out, errs := cli(t, s.env(), "reconcile"); code != 0 {
		t.Error(out, errs)
	}
}

func (s *stepping) env() map[string]string {
	return map[string]string{"QUOTAD_DATABASE_URL": s.server.URL()}
}

// customer makes a customer whose billing period no step ends.
func (s *stepping) customer(key string) {
	s.Helper()
	s.nodes[0].do("PUT", "/v1/customers/"+key, fmt.Sprintf(`{"name":"C","plan":"basic","timezone":"UTC","billing_anchor":%q}`,
		time.Now().UTC().AddDate(0, 0, -10).Format("2006-01-02T15:04:05"))).is(201)
}

// blip has the clock step for so short a time that no second measurement can confirm it, and has the
// first node measure it meanwhile. A machine that is too slow for that tries again.
func (s *stepping) blip() {
	s.Helper()
	clock := s.nodes[0].node.clock
	age := func() time.Duration {
		age, _, _ := clock.Quality()
		return age
	}
	before := [2]int64{s.nodes[0].node.clock.Steps(), s.nodes[1].node.clock.Steps()}
	for range 50 {
		testkit.Eventually(s, "a measurement is due", func() bool { return age() > 4700*time.Millisecond })
		began := time.Now()
		s.server.StepClock(longStep)
		measured := false
		for time.Since(began) < 600*time.Millisecond && !measured {
			measured = age() < time.Since(began)
			time.Sleep(time.Millisecond)
		}
		var at time.Time
		if measured {
			at = instant(s, s.nodes[0].do("POST", "/v1/hits", hitOf("acme", "calls", "")).is(200), "at")
			s.looked++
		}
		s.server.StepClock(0)
		if !measured || time.Since(began) > 900*time.Millisecond {
			continue
		}
		if ahead := time.Until(at); ahead > aside {
			s.Errorf("a hit was charged %s ahead", ahead)
		}
		testkit.Eventually(s, "the next measurement", func() bool { return age() < time.Since(began)-time.Second })
		s.together()
		for i, n := range s.nodes {
			if steps := n.node.clock.Steps(); steps != before[i] {
				s.Errorf("node %d confirmed a step that was gone after less than a second", i)
			}
		}
		return
	}
	s.Fatal("no measurement was made while the clock was ahead for less than a second")
}

// together: no counter is ahead of the machine's clock, which the server's is not, either.
func (s *stepping) together() {
	s.Helper()
	if n := query[int](s, s.server.URL(), "SELECT count(*)::int FROM counters WHERE at > $1", time.Now().Add(aside).UnixMicro()); n > 0 {
		s.Errorf("%d counters are ahead of the clock", n)
	}
}

// confirmed waits until both nodes have confirmed one step more.
func (s *stepping) confirmed(before [2]int64) {
	s.Helper()
	began := time.Now()
	for i, n := range s.nodes {
		testkit.Eventually(s, fmt.Sprintf("node %d uses the step", i), func() bool { return n.node.clock.Steps() > before[i] })
	}
	testkit.AtMost(s, "the use of a step", time.Since(began), 7*time.Second)
}

// stepAndBack has the clock be ahead until all nodes have charged by it.
func (s *stepping) stepAndBack(round int) {
	s.Helper()
	key := fmt.Sprintf("full-%d", round)
	s.customer(key)
	s.nodes[1].hears()
	take := func(n *testNode, cost int) *answer {
		return n.do("POST", "/v1/hits", hitOf(key, "requests", fmt.Sprintf(`,"cost":%d`, cost)))
	}
	for _, ahead := range []time.Duration{longStep, 0} {
		var before [2]int64
		for i, n := range s.nodes {
			before[i] = n.node.clock.Steps()
		}
		s.server.StepClock(ahead)
		s.confirmed(before)
		if ahead > 0 {
			s.isSaid(before, "has stepped forward", ahead)
			at := instant(s, take(s.nodes[round%2], 10).is(200), "at")
			if off := time.Until(at) - ahead; off > aside || off < -aside {
				s.Errorf("a hit was charged %s ahead", ahead+off)
			}
			continue
		}
		s.isSaid(before, "has stepped back", ahead)
	}
	ends := instant(s, take(s.nodes[round%2], 1).is(429), "limits.0.reset_at")
	if left := time.Until(ends); left < 2*longStep-aside || left > 2*longStep {
		s.Errorf("the window ends in %s", left)
	}
	for _, n := range s.nodes {
		s.tellsTheWait(take, n, ends)
	}
	s.repair(key)
	// Whoever has refused from memory asks again within a second.
	for _, n := range s.nodes {
		testkit.Eventually(s, "the window ends within an hour", func() bool {
			a := take(n, 1).is(429)
			wait, err := strconv.Atoi(a.header.Get("Retry-After"))
			return err == nil && wait <= int(time.Hour/time.Second)
		})
		take(n, 1).is(429).has("limits.0.used", 10) // nothing was given away
	}
	s.together()
}

// isSaid: each node's log and metrics tell of a step, where the clock is ahead of the machine's since.
func (s *stepping) isSaid(before [2]int64, what string, ahead time.Duration) {
	s.Helper()
	for i, n := range s.nodes {
		all := n.scrape()
		offset, err := strconv.ParseFloat(all["quotad_clock_offset_seconds"], 64)
		if off := offset - ahead.Seconds(); err != nil || off > aside.Seconds() || off < -aside.Seconds() {
			s.Errorf("%s: node %d has an offset of %s s", what, i, all["quotad_clock_offset_seconds"])
		}
		if all["quotad_clock_steps_total"] != strconv.FormatInt(before[i]+1, 10) {
			s.Errorf("%s: node %d counts %s steps", what, i, all["quotad_clock_steps_total"])
		}
		// Of what comes again within a minute the log may have no line.
		said := strings.Count(n.log.String(), `level=WARN msg="the database's clock `+what)
		if said == 0 || said > int(before[i]/2)+1 {
			s.Errorf("%s: node %d says it %d times:\n%s", what, i, said, n.log)
		}
	}
}

// tellsTheWait: refusals by a counter that is ahead tell the wait until an instant, from now on, and are
// counted. So do those from memory.
func (s *stepping) tellsTheWait(take func(*testNode, int) *answer, n *testNode, ends time.Time) {
	s.Helper()
	before := n.node.engine.Stats().Ahead
	const refusals = 5
	for range refusals {
		most := time.Until(ends).Seconds()
		a := take(n, 1).is(429)
		least := time.Until(ends).Seconds()
		// The offset of the two clocks is measured to a fraction of a second.
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || float64(wait) < least-2 || float64(wait) > most+3 {
			s.Errorf("Retry-After: %d, want %.0f to %.0f", wait, least, most)
		}
		if until := instant(s, a, "at").Add(time.Duration(a.num("retry_after_ms")) * time.Millisecond); until.Sub(ends).Abs() > time.Millisecond {
			s.Errorf("by the body it is to wait until %s, and by the window's end until %s", until, ends)
		}
	}
	if counted := n.node.engine.Stats().Ahead - before; counted < refusals {
		s.Errorf("%d of %d refusals are counted as ahead", counted, refusals)
	}
	if !strings.Contains(n.log.String(), "quotad repair clock") {
		s.Error("the log does not say what to do")
	}
}

// repair brings all counters back. One that others hold is left for the next time.
func (s *stepping) repair(key string) {
	s.Helper()
	repair := func(args ...string) (r repaired, code int) {
		code, out, errs := cli(s, s.env(), append([]string{"repair", "clock"}, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			s.Fatalf("code %d: %s%s", code, out, errs)
		}
		return r, code
	}
	if r, code := repair("--dry-run"); code != 0 || r.Ahead != 2 || r.Brought != 0 || r.Furthest < (longStep-aside).Seconds() ||
		r.Furthest > longStep.Seconds() || r.Offset > 1 || r.Offset < -1 {
		s.Errorf("%s and acme are ahead, and it says %+v, code %d", key, r, code)
	}
	brought := 0
	testkit.Eventually(s, "all are brought back", func() bool {
		r, code := repair()
		brought += r.Brought
		return code == 0 && r.Left == 0
	})
	if brought != 2 {
		s.Errorf("%d counters were brought back, of 2", brought)
	}
}

// instant is a member of an answer.
func instant(t testing.TB, a *answer, path string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.str(path))
	if err != nil {
		t.Fatal(err)
	}
	return at
}
