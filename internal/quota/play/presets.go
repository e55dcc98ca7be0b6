package play

import (
	"fmt"
	"slices"

	"quotad/internal/quota/model"
)

// Preset is a well-known limit with traffic that shows its effect.
type Preset struct {
	Key, Name string
	Spec      model.Spec
	Traffic   Traffic
}

func units(n int64) *int64 { return &n }

// Presets are well-known limits as their operators publish them.
func Presets() []Preset {
	const second, minute, hour, day = int64(1e6), int64(60e6), int64(3600e6), int64(86400e6)
	return []Preset{
		{
			"github", "GitHub",
			model.Spec{Name: "hourly", Algorithm: "fixed_window", Limit: 5000, Window: "1h"},
			Traffic{Pattern: Edge, Window: hour, Windows: 3, Steady: 300, Burst: 3400, Cost: 1},
		},
		{
			"stripe", "Stripe",
			model.Spec{Name: "api", Algorithm: "token_bucket", Limit: 100, Window: "1s", Burst: units(500)},
			Traffic{Pattern: Bursts, Window: second, Windows: 12, Steady: 60, Burst: 180, Cost: 1},
		},
		{
			"openai", "OpenAI",
			model.Spec{Name: "daily", Algorithm: "token_bucket", Limit: 200, Window: "1d"},
			Traffic{Pattern: Edge, Window: day, Windows: 4, Steady: 48, Burst: 176, Cost: 1},
		},
		{
			"login", "Login form",
			model.Spec{Name: "attempts", Algorithm: "sliding_log", Limit: 5, Window: "15m"},
			Traffic{Pattern: Bursts, Window: 15 * minute, Windows: 6, Steady: 2, Burst: 8, Cost: 1},
		},
	}
}

// Algorithms are the algorithms that plays compare, in their order.
var Algorithms = model.ComparedAlgorithms()

// Variants returns a limit in each of Algorithms. window is the limit's window, in µs. Algorithms with a burst
// receive the burst. The log of a large limit counts in blocks, because a play of an exact log takes seconds.
func Variants(limit, window int64, burst *int64) []model.Spec {
	specs := make([]model.Spec, len(Algorithms))
	for i, algorithm := range Algorithms {
		specs[i] = model.Spec{Name: algorithm, Algorithm: algorithm, Limit: limit, Window: fmt.Sprintf("%dus", window)}
		if slices.Contains(model.TakenBy("burst"), algorithm) {
			specs[i].Burst = burst
		}
		if limit > logBlocks && slices.Contains(model.TakenBy("precision"), algorithm) {
			specs[i].Precision = fmt.Sprintf("%dus", (window+logBlocks-1)/logBlocks)
		}
	}
	return specs
}

// logBlocks is the number of blocks in the window of a log. Below this limit the log is exact.
const logBlocks = 100
