package ledger

import (
	"context"
	"slices"

	"quotad/internal/quota/usage"
)

// countersAtOnce bounds what one statement reads.
const countersAtOnce = 80

// used reads what spans hold, in their order. What is of one span is of one snapshot.
func used(ctx context.Context, q querier, spans []usage.Span) ([]usage.Sum, error) {
	all := make([]usage.Sum, 0, len(spans))
	for some := range slices.Chunk(spans, countersAtOnce) {
		sums, err := usage.Sums(ctx, q, some)
		if err != nil {
			return nil, err
		}
		all = append(all, sums...)
	}
	return all, nil
}

// without are the adjustments but some others.
func without(all []usage.Adjustment, others []usage.Key) []usage.Adjustment {
	gone := make(map[usage.Key]bool, len(others))
	for _, a := range others {
		gone[a] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(a usage.Adjustment) bool { return gone[a.Key] })
}
