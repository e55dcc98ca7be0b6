package api

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quotad/internal/api/hits"
	"quotad/internal/api/respond"

	"github.com/go-json-experiment/json"
)

// A vector is a file of internal/quota/testdata/vectors/limits: hits and what is to come
// of each, here by way of HTTP on a customer with a test clock.
type vector struct {
	Limits []struct {
		Name        string `json:"name"`
		Algorithm   string `json:"algorithm"`
		Limit       int64  `json:"limit"`
		WindowUS    int64  `json:"window_us"`
		PrecisionUS int64  `json:"precision_us"`
		Burst       *int64 `json:"burst"`
		Align       string `json:"align"`
	} `json:"limits"`
	Hits []struct {
		AtUS    int64 `json:"at_us"`
		Cost    int64 `json:"cost"`
		Allowed bool  `json:"allowed"`
		Limits  []struct {
			Remaining    int64  `json:"remaining"`
			ResetAtUS    int64  `json:"reset_at_us"`
			RetryAfterUS *int64 `json:"retry_after_us"`
		} `json:"limits"`
	} `json:"hits"`
}

// plan is the vector's limits as a plan's.
func (v *vector) plan() string {
	var limits []string
	for _, l := range v.Limits {
		text := fmt.Sprintf(`{"name":%q,"meter":"requests","algorithm":%q,"limit":%d,"window":"%dus"`, l.Name, l.Algorithm, l.Limit, l.WindowUS)
		if l.PrecisionUS > 0 {
			text += fmt.Sprintf(`,"precision":"%dus"`, l.PrecisionUS)
		}
		if l.Burst != nil {
			text += fmt.Sprintf(`,"burst":%d`, *l.Burst)
		}
		if l.Align != "" {
			text += fmt.Sprintf(`,"align":%q`, l.Align)
		}
		limits = append(limits, text+"}")
	}
	return `{"name":"V","currency":"USD","interval":"month","limits":[` + strings.Join(limits, ",") + `]}`
}

// TestVectorsOverHTTP: every vector, those of the documented examples among them, is
// answered by the whole service as it is by the model.
func TestVectorsOverHTTP(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../quota/testdata/vectors/limits/*.json")
	check(t, err)
	if len(files) < 20 {
		t.Fatalf("%d vectors", len(files))
	}
	n := newNode(t)
	n.want(201, "PUT", "/v1/meters/requests", `{"unit":"request"}`)
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if testing.Short() && strings.HasPrefix(name, "random") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			check(t, err)
			var v vector
			check(t, json.Unmarshal(text, &v))
			n.playVector(t, name, &v)
		})
	}
}

func (n *node) playVector(t *testing.T, name string, v *vector) {
	setClock := func(us int64) {
		got := n.do("PUT", "/v1/test-clocks/"+name, `{"now":"`+respond.Time(us).Format("2006-01-02T15:04:05.000000Z07:00")+`"}`)
		if got.status != 200 && got.status != 201 {
			t.Fatalf("clock: %s", got.text)
		}
	}
	setClock(v.Hits[0].AtUS)
	n.want(201, "PUT", "/v1/plans/"+name, v.plan())
	n.want(201, "PUT", "/v1/customers/"+name, fmt.Sprintf(`{"name":"V","plan":%q,"timezone":"UTC","test_clock":%q}`, name, name))
	for i, h := range v.Hits {
		setClock(h.AtUS)
		got := n.do("POST", hits.Pattern, fmt.Sprintf(`{"customer":%q,"meter":"requests","cost":%d}`, name, h.Cost))
		if status := map[bool]int{true: 200, false: 429}[h.Allowed]; got.status != status || got.json["test_clock"] != name {
			t.Fatalf("hit %d: %d %s", i, got.status, got.text)
		}
		for j, want := range h.Limits {
			l := got.json["limits"].([]any)[j].(map[string]any)
			var wait any
			if want.RetryAfterUS != nil {
				wait = float64((*want.RetryAfterUS + 999) / 1000)
			}
			reset := respond.Time(want.ResetAtUS).Format("2006-01-02T15:04:05.999999Z07:00")
			if l["name"] != v.Limits[j].Name || l["remaining"] != float64(want.Remaining) || l["reset_at"] != reset || l["retry_after_ms"] != wait {
				t.Fatalf("hit %d: %v, want %d left, reset at %s, to be retried after %v", i, l, want.Remaining, reset, wait)
			}
		}
	}
}
