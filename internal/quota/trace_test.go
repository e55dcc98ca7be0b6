package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
	"quotad/internal/testkit/quotatest"
)

// trace is a run of hits as data, so that one that fails can be kept and run again.
type trace struct {
	Source  string        `json:"source"`
	Targets []traceTarget `json:"targets"`
	Steps   []traceStep   `json:"steps"`
}

// traceTarget is what hits are judged by; several may name the same counters, as the
// same target resolved twice (or under an older change) does.
type traceTarget struct {
	Meter    int32          `json:"meter"`
	Change   int64          `json:"change"`
	Calendar *traceCalendar `json:"calendar,omitempty"` // nil: testTarget's
	Counters []traceCounter `json:"counters"`
}

// traceCalendar is where the customer's hours, days and billing periods start.
type traceCalendar struct {
	Zone   string `json:"zone"`
	Anchor string `json:"anchor"`
	Unit   string `json:"unit"`
	Count  int    `json:"count"`
}

func (c *traceCalendar) periods() calendar.Periods {
	zone, err := calendar.Location(c.Zone)
	anchor, bad := calendar.ParseAnchor(c.Anchor)
	if err = errors.Join(err, bad); err != nil {
		panic(err)
	}
	return calendar.Periods{Zone: zone, Anchor: anchor, Interval: calendar.Interval{Unit: calendar.Unit(c.Unit), Count: c.Count}}
}

type traceCounter struct {
	Attribute string       `json:"attribute,omitempty"`
	Limits    []traceLimit `json:"limits"`
}

type traceLimit struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Limit     int64  `json:"limit"`
	WindowUS  int64  `json:"window_us,omitempty"`
	Window    string `json:"window,omitempty"` // the calendar's, by name
	Burst     *int64 `json:"burst,omitempty"`
	Align     string `json:"align,omitempty"`
	Precision int64  `json:"precision_us,omitempty"`
	Mode      string `json:"mode,omitempty"`
	// Rates are what a token bucket's limit was, up to now.
	Rates model.Rates `json:"rates,omitempty"`
}

// traceStep is one or more hits at one reading of the clock. How: "one" by one through
// the engine, "all" at once through it, one "batch" of a lane, or "look".
type traceStep struct {
	How  string     `json:"how"`
	AtUS int64      `json:"at_us"`
	Hits []traceHit `json:"hits"`
}

type traceHit struct {
	Target int   `json:"target"`
	Cost   int64 `json:"cost"`
}

func (l traceLimit) spec() model.Spec {
	s := model.Spec{Name: l.Name, Algorithm: l.Algorithm, Limit: l.Limit, Window: l.Window, Burst: l.Burst, Align: l.Align, Mode: l.Mode}
	if l.WindowUS != 0 || l.Window == "" && l.Algorithm != "allocation" {
		s.Window = fmt.Sprintf("%dus", l.WindowUS)
	}
	if l.Precision != 0 {
		s.Precision = fmt.Sprintf("%dus", l.Precision)
	}
	return s
}

// targets compiles the trace's targets for a customer.
func (tr *trace) targets(customer int64) ([]*model.Target, error) {
	targets := make([]*model.Target, len(tr.Targets))
	for i, tt := range tr.Targets {
		target := quotatest.Target(customer, tt.Meter, tt.Change)
		target.Counters = nil
		if tt.Calendar != nil {
			target.Periods = tt.Calendar.periods()
		}
		for _, c := range tt.Counters {
			counter := model.Counter{Key: model.CounterKey{Customer: customer, Meter: tt.Meter, Attribute: c.Attribute}}
			for _, tl := range c.Limits {
				l, bad := model.Compile(tl.spec())
				if bad != nil {
					return nil, fmt.Errorf("target %d, limit %s: %w", i, tl.Name, bad)
				}
				counter.Limits = append(counter.Limits, l.WithRates(tl.Rates))
			}
			target.Counters = append(target.Counters, counter)
		}
		targets[i] = target
	}
	return targets, nil
}

// bench is a database with two nodes on it, one that runs and one whose batches the
// test composes, for traces to run on.
type bench struct {
	db       *testDB
	clock    *quotatest.Clock
	engine   *Engine
	hand     *Engine
	batches  int // statements' round trips of the hand-driven lane
	handed   int // steps of several batches
	memories int // refusals from memory
	looks    int
	stale    int
	seen     map[string]int // of each branch: admitted on used ones, refused to wait, for good
}

// note counts what the traces must not miss.
func (b *bench) note(d *model.Decision) {
	for i, v := range d.Views() {
		branch := branchOf(d.Target.LimitAt(i))
		if mode := d.Target.LimitAt(i).Mode; mode != model.Hard {
			b.seen[fmt.Sprintf("%s %s exceeded %v", branch, mode, v.Exceeded)]++
			continue
		}
		switch {
		case v.RetryAfter == model.Never:
			b.seen[branch+" never"]++
		case v.RetryAfter > 0:
			b.seen[branch+" waits"]++
		case d.Allowed && v.Used > d.Cost:
			b.seen[branch+" admitted"]++
		}
	}
}

func newBench(t testing.TB) *bench {
	db, clock := newTestDB(t), quotatest.NewClock(quotatest.Epoch)
	return &bench{db: db, clock: clock, engine: db.startEngine(t, clock), hand: db.handEngine(t, clock), seen: make(map[string]int)}
}

// run plays a trace on a customer of its own and returns the first difference from the
// model or the oracle.
func (b *bench) run(ctx context.Context, tr *trace) error {
	customer := quotatest.FreshCustomers(1)
	targets, err := tr.targets(customer)
	if err != nil {
		return err
	}
	r := &traceRun{bench: b, customer: customer, model: newModel(), oracle: newOracle()}
	for i, step := range tr.Steps {
		hits := make([]model.Hit, len(step.Hits))
		for j, h := range step.Hits {
			hits[j] = model.Hit{Target: targets[h.Target], Cost: h.Cost, Look: step.How == "look"}
		}
		b.clock.Set(step.AtUS)
		if err := r.step(ctx, step.How, step.AtUS, hits); err != nil {
			return fmt.Errorf("step %d (%s at %d): %w", i, step.How, step.AtUS, err)
		}
	}
	return nil
}

// runModel plays a trace on the model and the oracle alone.
func (tr *trace) runModel() error {
	targets, err := tr.targets(1)
	if err != nil {
		return err
	}
	m, o := newModel(), newOracle()
	for i, step := range tr.Steps {
		for _, h := range step.Hits {
			t := targets[h.Target]
			if m.stale(t) != nil {
				continue
			}
			var d model.Decision
			if step.How == "look" || h.Cost == 0 {
				d = model.Judge(t, m.rows(t, step.AtUS), step.AtUS, h.Cost)
			} else {
				d, _ = m.decide(t, step.AtUS, h.Cost)
			}
			if err := o.agrees(&d, step.AtUS, step.How == "look"); err != nil {
				return fmt.Errorf("step %d, hit %+v: %w", i, h, err)
			}
		}
	}
	return nil
}

// agrees compares a decision with the contract's definitions, and charges the oracle.
func (o *oracle) agrees(d *model.Decision, now int64, look bool) error {
	var allowed bool
	var at int64
	var views []model.View
	if look {
		allowed, at, views = o.look(d.Target, now, d.Cost)
	} else {
		allowed, at, views = o.decide(d.Target, now, d.Cost)
	}
	if d.Allowed != allowed || d.At != at {
		return fmt.Errorf("decided %s, by definition %v at %d", d.String(), allowed, at)
	}
	longest := int64(0)
	for i, want := range views {
		if got := d.View(i); got != want {
			return fmt.Errorf("%s: limit %+v: view %+v, by definition %+v", d.String(), *want.Limit, got, want)
		}
		if want.Limit.Mode != model.Hard {
			continue
		}
		if want.RetryAfter == model.Never || longest == model.Never {
			longest = model.Never
		} else {
			longest = max(longest, want.RetryAfter)
		}
	}
	if got := d.RetryAfter(); got != longest {
		return fmt.Errorf("%s: to be retried after %d, by definition %d", d.String(), got, longest)
	}
	return nil
}

const failedDir = "testdata/failed"

// keep writes a trace that failed, for TestTracesAgain, and returns the file's name.
func (tr *trace) keep(t testing.TB, why error) string {
	tr.Source = fmt.Sprintf("%s: %v", t.Name(), why)
	text, err := json.MarshalIndent(tr, "", " ")
	path := filepath.Join(failedDir, strings.ReplaceAll(t.Name(), "/", "_")+".json")
	if err = errors.Join(err, os.MkdirAll(failedDir, 0o755)); err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return err.Error()
	}
	return path
}

func readTrace(path string) (*trace, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tr := new(trace)
	if err := json.Unmarshal(text, tr); err != nil {
		return nil, err
	}
	if len(tr.Steps) == 0 || len(tr.Targets) == 0 {
		return nil, fmt.Errorf("%s is no trace", path)
	}
	return tr, nil
}
