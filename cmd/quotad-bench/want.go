package main

import (
	"fmt"
	"slices"
	"strings"
)

// The metrics of quotad that the bench reads.
const (
	requestsMetric = "quotad_http_requests_total"
	hitsMetric     = "quotad_hits_total"
	batchesMetric  = "quotad_engine_batches_total"
	mallocsMetric  = "go_memstats_mallocs_total"
	bytesMetric    = "go_memstats_alloc_bytes_total"
	evictedMetric  = "quotad_customers_evicted_total"
)

// check compares what quotad counted before and after the rounds with what the row is
// about: but for a few, and for requests, each of so many hits, that were cut off when
// load makers closed their connections; quotad counts them as not waited for.
func (w want) check(before, after metrics, cut, hitsEach int) error {
	status := func(series string) bool { return slices.Contains(strings.Fields(w.status), label(series, "status")) }
	posted := func(series string) bool {
		return strings.HasPrefix(series, requestsMetric) && label(series, "method") == "POST"
	}
	if err := mostly(before, after, cut, posted, status); err != nil {
		return fmt.Errorf("%w of status %s", err, w.status)
	}
	if w.outcome == "" {
		return nil
	}
	outcome := func(series string) bool { return label(series, "outcome") == w.outcome }
	hits := func(series string) bool { return strings.HasPrefix(series, hitsMetric) }
	if err := mostly(before, after, cut*hitsEach, hits, outcome); err != nil {
		return fmt.Errorf("%w %s", err, w.outcome)
	}
	return nil
}

// mostly looks whether what was counted in the series that are looked at is in the right
// ones of them.
func mostly(before, after metrics, cut int, at, right func(series string) bool) error {
	total, good := 0.0, 0.0
	for series := range after {
		if !at(series) {
			continue
		}
		n := after[series] - before[series]
		total += n
		if right(series) {
			good += n
		}
	}
	if total == 0 || total-good > few*total+float64(cut) {
		return fmt.Errorf("%w: only %.0f of %.0f are", errAnswers, good, total)
	}
	return nil
}
