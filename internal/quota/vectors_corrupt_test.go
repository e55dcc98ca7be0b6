package quota

import (
	"slices"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
	"quotad/internal/testkit/vectors"
)

// corruptHit has ways to change one field of a hit, or of the hit's view of a limit, to a wrong value.
var corruptHit = map[string]func(h *vectorHit, limit int){
	"allowed":   func(h *vectorHit, _ int) { h.Allowed = ptr(!*h.Allowed) },
	"remaining": func(h *vectorHit, l int) { h.Limits[l].Remaining = ptr(*h.Limits[l].Remaining + 1) },
	"less":      func(h *vectorHit, l int) { h.Limits[l].Remaining = ptr(*h.Limits[l].Remaining - 1) },
	"reset":     func(h *vectorHit, l int) { h.Limits[l].ResetAtUS = ptr(*h.Limits[l].ResetAtUS + 1) },
	"no reset":  func(h *vectorHit, l int) { h.Limits[l].ResetAtUS = nil },
	"retry":     func(h *vectorHit, l int) { h.Limits[l].RetryAfter.us++ },
	"never": func(h *vectorHit, l int) {
		w := &h.Limits[l].RetryAfter
		if w.us == model.Never {
			w.us = 0
		} else {
			w.us = model.Never
		}
	},
	"no retry": func(h *vectorHit, l int) { h.Limits[l].RetryAfter = wait{} },
	"name":     func(h *vectorHit, l int) { h.Limits[l].Name += "x" },
	"views":    func(h *vectorHit, _ int) { h.Limits = h.Limits[1:] },
	"cost":     func(h *vectorHit, _ int) { h.Cost = nil },
	"at":       func(h *vectorHit, _ int) { h.AtUS = nil },
}

// corruptLimits has ways to change a limit, or the vector as a whole.
var corruptLimits = map[string]func(v *vector, limit int){
	"algorithm": func(v *vector, l int) { v.Limits[l].Algorithm = "leaky_bucket" },
	"limit":     func(v *vector, l int) { v.Limits[l].Limit += v.Limits[l].Limit + 1; v.Limits[l].Burst = nil },
	"window":    func(v *vector, l int) { v.Limits[l].WindowUS = 0 },
	"calendar":  func(v *vector, l int) { v.Limits[l].WindowUS, v.Limits[l].Window = 0, "calendar_hour" },
	"align":     func(v *vector, l int) { v.Limits[l].Align = "sideways" },
	"other align": func(v *vector, l int) {
		switch limit := &v.Limits[l]; {
		case limit.Align == "first_hit":
			limit.Align = "clock"
		case limit.Limit > 0 && limit.WindowUS > 0 && *v.Hits[0].AtUS%limit.WindowUS != 0:
			limit.Align = "first_hit"
		default: // the same windows either way
			limit.Align = "sideways"
		}
	},
	"no hits":      func(v *vector, _ int) { v.Hits = nil },
	"no limits":    func(v *vector, _ int) { v.Limits = nil },
	"limits order": func(v *vector, l int) { v.Limits[l].Name = "z" + v.Limits[l].Name },
}

func ptr[T any](v T) *T { return &v }

// withHit returns a copy of the vector in which one hit can be changed.
func (v *vector) withHit(h int) *vector {
	c := *v
	c.Hits = slices.Clone(v.Hits)
	c.Hits[h].Limits = slices.Clone(v.Hits[h].Limits)
	return &c
}

// withLimits returns a copy of the vector in which the limits can be changed.
func (v *vector) withLimits() *vector {
	c := *v
	c.Limits = slices.Clone(v.Limits)
	return &c
}

// played plays the vector once and returns a function that makes deciders, each of which repeats the decisions of that play.
func (v *vector) played(t *testing.T, newDecider func(*vector) (decider, error)) func(*vector) (decider, error) {
	t.Helper()
	var decisions []model.Decision
	decide, err := newDecider(v)
	if err == nil {
		err = v.play(func(now, cost int64) (model.Decision, error) {
			d, err := decide(now, cost)
			decisions = append(decisions, d)
			return d, err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(*vector) (decider, error) {
		next := 0
		return func(int64, int64) (model.Decision, error) {
			next++
			return decisions[next-1], nil
		}, nil
	}
}

// TestVectorsLimitsCorrupted runs vectors in which one field is wrong. A runner that passes everything would pass
// the right vectors, too. The outcomes of hits are no part of what is decided, so the hits are decided
// once, and each wrong outcome is compared with the same decisions. A wrong limit decides anew.
func TestVectorsLimitsCorrupted(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, withoutMemory)
	runners := map[string]func(*vector) (decider, error){"model": onModel, "engine": onEngine(ctx, e, clock)}
	for n, path := range vectors.Files(t, "limits") {
		if n%quotatest.Sized(5, 1, 1) > 0 {
			continue
		}
		whole, err := readVector(path)
		if err != nil {
			t.Fatal(err)
		}
		for runner, decides := range runners {
			again := whole.played(t, decides)
			for h := 0; h < len(whole.Hits); h += 1 + len(whole.Hits)/12 {
				for l := range whole.Limits {
					for name, corrupt := range corruptHit {
						v := whole.withHit(h)
						if corrupt(&v.Hits[h], l); v.playOn(again) == nil {
							t.Errorf("%s passes the %s with a wrong %s in hit %d", path, runner, name, h)
						}
					}
				}
			}
			for l := range whole.Limits {
				for name, corrupt := range corruptLimits {
					v := whole.withLimits()
					if corrupt(v, l); v.playOn(decides) == nil {
						t.Errorf("%s passes the %s with a wrong %s", path, runner, name)
					}
				}
			}
		}
	}
}
