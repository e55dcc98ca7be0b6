package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
	"quotad/internal/testkit/vectors"
)

// vector is a file of the layout that CONTRIBUTING.md describes (A failed test): hits on one
// customer and meter, and what is to come of each.
type vector struct {
	Source any          `json:"source"`
	Limits []traceLimit `json:"limits"`
	Hits   []vectorHit  `json:"hits"`
}

type vectorHit struct {
	AtUS    *int64       `json:"at_us"`
	Cost    *int64       `json:"cost"`
	Allowed *bool        `json:"allowed"`
	Limits  []vectorView `json:"limits"`
}

type vectorView struct {
	Name       string `json:"name"`
	Remaining  *int64 `json:"remaining"`
	ResetAtUS  *int64 `json:"reset_at_us"`
	RetryAfter wait   `json:"retry_after_us"`
}

// wait is µs or Never, which JSON writes as null; left out it is neither.
type wait struct {
	us    int64
	there bool
}

func (w *wait) UnmarshalJSON(text []byte) error {
	w.there = true
	if string(text) == "null" {
		w.us = model.Never
		return nil
	}
	if err := json.Unmarshal(text, &w.us); err != nil {
		return err
	}
	if w.us < 0 {
		return fmt.Errorf("a wait of %d µs", w.us)
	}
	return nil
}

func readVector(path string) (*vector, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	v := new(vector)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, err
	}
	return v, v.whole()
}

// whole checks that nothing is left out, which a comparison could take for a zero.
func (v *vector) whole() error {
	if len(v.Limits) == 0 || len(v.Hits) == 0 {
		return errors.New("no limits or no hits")
	}
	for i, h := range v.Hits {
		if h.AtUS == nil || h.Cost == nil || h.Allowed == nil || len(h.Limits) != len(v.Limits) {
			return fmt.Errorf("hit %d is not whole", i)
		}
		for j, l := range h.Limits {
			if l.Remaining == nil || l.ResetAtUS == nil || !l.RetryAfter.there || l.Name != v.Limits[j].Name {
				return fmt.Errorf("hit %d, limit %d (%s) is not whole", i, j, l.Name)
			}
		}
	}
	return nil
}

func (v *vector) target(customer int64) (*model.Target, error) {
	tr := trace{Targets: []traceTarget{{Meter: 1, Change: 1, Counters: []traceCounter{{Limits: v.Limits}}}}}
	targets, err := tr.targets(customer)
	if err != nil {
		return nil, err
	}
	return targets[0], nil
}

// check compares a decision with a hit's outcome.
func (h *vectorHit) check(d *model.Decision) error {
	if d.Allowed != *h.Allowed {
		return fmt.Errorf("allowed %v, want %v", d.Allowed, *h.Allowed)
	}
	for i, want := range h.Limits {
		got := d.View(i)
		if got.Remaining != *want.Remaining || got.ResetAt != *want.ResetAtUS || got.RetryAfter != want.RetryAfter.us {
			return fmt.Errorf("%s: remaining %d, reset %d, retry %d; want %d, %d, %d", want.Name, got.Remaining,
				got.ResetAt, got.RetryAfter, *want.Remaining, *want.ResetAtUS, want.RetryAfter.us)
		}
	}
	return nil
}

// decider decides a hit of a cost at an instant in µs.
type decider func(now, cost int64) (model.Decision, error)

// play sends the hits one after the other to decide and returns the first that differs.
func (v *vector) play(decide decider) error {
	if err := v.whole(); err != nil {
		return err
	}
	for i, h := range v.Hits {
		d, err := decide(*h.AtUS, *h.Cost)
		if err == nil {
			err = h.check(&d)
		}
		if err != nil {
			return fmt.Errorf("hit %d (cost %d at %d): %w", i, *h.Cost, *h.AtUS, err)
		}
	}
	return nil
}

// playOn plays the vector with a new decider for the vector's limits.
func (v *vector) playOn(newDecider func(*vector) (decider, error)) error {
	decide, err := newDecider(v)
	if err != nil {
		return err
	}
	return v.play(decide)
}

// onModel returns a decider that runs on the Go model.
func onModel(v *vector) (decider, error) {
	t, err := v.target(1)
	m, o := newModel(), newOracle()
	return func(now, cost int64) (model.Decision, error) {
		var d model.Decision
		if cost == 0 {
			d = model.Judge(t, m.rows(t, now), now, 0)
		} else {
			d, _ = m.decide(t, now, cost)
		}
		return d, o.agrees(&d, now, false)
	}, err
}

// onEngine returns a function that makes deciders that run through an engine, each on a customer of its own.
func onEngine(ctx context.Context, e *Engine, clock *quotatest.Clock) func(*vector) (decider, error) {
	return func(v *vector) (decider, error) {
		t, err := v.target(quotatest.FreshCustomers(1))
		return func(now, cost int64) (model.Decision, error) {
			clock.Set(now)
			return e.Decide(ctx, t, cost)
		}, err
	}
}

// runVectorMemory runs a vector through an engine that answers from memory. What it
// refuses so, it refuses on the rows that it saw last, which is not what remains now: of
// those refusals only that they are rightly ones is compared.
func runVectorMemory(ctx context.Context, e *Engine, clock *quotatest.Clock, v *vector) error {
	t, err := v.target(quotatest.FreshCustomers(1))
	if err != nil {
		return err
	}
	for i, h := range v.Hits {
		clock.Set(*h.AtUS)
		d, err := e.Decide(ctx, t, *h.Cost)
		if err == nil && (d.AsOf == 0 || d.Allowed != *h.Allowed) {
			err = h.check(&d)
		}
		if err != nil {
			return fmt.Errorf("hit %d (cost %d at %d): %w", i, *h.Cost, *h.AtUS, err)
		}
	}
	return nil
}

// forVectors runs a subtest for each file.
func forVectors(t *testing.T, run func(*vector) error) {
	vectors.Each(t, "limits", func(t *testing.T, path string) {
		v, err := readVector(path)
		if err == nil {
			err = run(v)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	})
}

func TestVectorsLimitsModel(t *testing.T) {
	forVectors(t, func(v *vector) error { return v.playOn(onModel) })
}

func TestVectorsLimitsSQL(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, withoutMemory)
	remembering := db.startEngine(t, clock)
	forVectors(t, func(v *vector) error {
		named := func(how string, err error) error {
			if err == nil {
				return nil
			}
			return fmt.Errorf("%s: %w", how, err)
		}
		return errors.Join(
			named("the engine", v.playOn(onEngine(ctx, e, clock))),
			named("the engine with its memory", runVectorMemory(ctx, remembering, clock, v)))
	})
	if remembering.Stats().FromMemory == 0 {
		t.Error("nothing was refused from memory")
	}
}
