package quota

import (
	"slices"
	"testing"

	"quotad/internal/quota/model"
	"quotad/internal/testkit"
	"quotad/internal/testkit/quotatest"
	"quotad/internal/testkit/vectors"
)

// corruptions change one field of one hit, or of the limits, to a wrong value.
var corruptions = map[string]func(v *vector, hit, limit int){
	"allowed":   func(v *vector, h, _ int) { v.Hits[h].Allowed = ptr(!*v.Hits[h].Allowed) },
	"remaining": func(v *vector, h, l int) { *v.Hits[h].Limits[l].Remaining++ },
	"less":      func(v *vector, h, l int) { *v.Hits[h].Limits[l].Remaining-- },
	"reset":     func(v *vector, h, l int) { *v.Hits[h].Limits[l].ResetAtUS++ },
	"no reset":  func(v *vector, h, l int) { v.Hits[h].Limits[l].ResetAtUS = nil },
	"retry":     func(v *vector, h, l int) { v.Hits[h].Limits[l].RetryAfter.us++ },
	"never": func(v *vector, h, l int) {
		w := &v.Hits[h].Limits[l].RetryAfter
		if w.us == model.Never {
			w.us = 0
		} else {
			w.us = model.Never
		}
	},
	"no retry":  func(v *vector, h, l int) { v.Hits[h].Limits[l].RetryAfter = wait{} },
	"name":      func(v *vector, h, l int) { v.Hits[h].Limits[l].Name += "x" },
	"views":     func(v *vector, h, _ int) { v.Hits[h].Limits = v.Hits[h].Limits[1:] },
	"cost":      func(v *vector, h, _ int) { v.Hits[h].Cost = nil },
	"at":        func(v *vector, h, _ int) { v.Hits[h].AtUS = nil },
	"algorithm": func(v *vector, _, l int) { v.Limits[l].Algorithm = "leaky_bucket" },
	"limit":     func(v *vector, _, l int) { v.Limits[l].Limit += v.Limits[l].Limit + 1; v.Limits[l].Burst = nil },
	"window":    func(v *vector, _, l int) { v.Limits[l].WindowUS = 0 },
	"calendar":  func(v *vector, _, l int) { v.Limits[l].WindowUS, v.Limits[l].Window = 0, "calendar_hour" },
	"align":     func(v *vector, _, l int) { v.Limits[l].Align = "sideways" },
	"other align": func(v *vector, _, l int) {
		switch limit := &v.Limits[l]; {
		case limit.Align == "first_hit":
			limit.Align = "clock"
		case limit.Limit > 0 && limit.WindowUS > 0 && *v.Hits[0].AtUS%limit.WindowUS != 0:
			limit.Align = "first_hit"
		default: // the same windows either way
			limit.Align = "sideways"
		}
	},
	"no hits":      func(v *vector, _, _ int) { v.Hits = nil },
	"no limits":    func(v *vector, _, _ int) { v.Limits = nil },
	"limits order": func(v *vector, _, l int) { v.Limits[l].Name = "z" + v.Limits[l].Name },
}

func ptr[T any](v T) *T { return &v }

// copyOf is a deep copy that can be corrupted.
func (v *vector) copyOf() *vector {
	c := &vector{Source: v.Source, Limits: slices.Clone(v.Limits)}
	for _, h := range v.Hits {
		h.Limits = slices.Clone(h.Limits)
		for i := range h.Limits {
			h.Limits[i].Remaining, h.Limits[i].ResetAtUS = ptr(*h.Limits[i].Remaining), ptr(*h.Limits[i].ResetAtUS)
		}
		c.Hits = append(c.Hits, h)
	}
	return c
}

// A runner that passes everything would pass the vectors, too: each kind of field of
// many hits, made wrong, must fail the model's, and each kind of field in one hit of each file the SQL's.
func TestVectorsLimitsCorrupted(t *testing.T) {
	db, ctx, clock := newTestDB(t), testkit.Context(t), quotatest.NewClock(quotatest.Epoch)
	e := db.startEngine(t, clock, withoutMemory)
	for n, path := range vectors.Files(t, "limits") {
		if n%quotatest.Sized(5, 1, 1) > 0 {
			continue
		}
		whole, err := readVector(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, corrupt := range corruptions {
			for h := 0; h < len(whole.Hits); h += 1 + len(whole.Hits)/12 {
				for l := range whole.Limits {
					v := whole.copyOf()
					corrupt(v, h, l)
					if runVectorModel(v) == nil {
						t.Errorf("%s passes the model with a wrong %s in hit %d", path, name, h)
					}
				}
			}
			v := whole.copyOf()
			corrupt(v, n%min(5, len(v.Hits)), len(v.Limits)-1)
			if runVectorEngine(ctx, e, clock, v) == nil {
				t.Errorf("%s passes the engine with a wrong %s", path, name)
			}
		}
	}
}
