package compare

import (
	"testing"

	"quotad/internal/quota/model"
)

// TestHowEachAlgorithmIsPlayed: an algorithm of which nobody has said how it is played is unknown,
// and not played as another.
func TestHowEachAlgorithmIsPlayed(t *testing.T) {
	want := map[string]How{
		"fixed_window": ByHour, "sliding_window": Spread, "sliding_log": Spread, "token_bucket": Spread,
		"allocation": Unknown, "concurrency": Unknown,
	}
	for _, name := range model.AlgorithmNames() {
		spec := model.Spec{Name: "x", Algorithm: name, Limit: 10, Window: "1h"}
		if name == "allocation" || name == "concurrency" {
			spec.Window = ""
		}
		if name == "concurrency" {
			spec.TTL = "1h"
		}
		l, bad := model.Compile(spec)
		if len(bad) > 0 {
			t.Fatal(bad)
		}
		if got := how(l, true); got != want[name] {
			t.Errorf("%s is played %s, want %q", name, got, want[name])
		}
	}
}
