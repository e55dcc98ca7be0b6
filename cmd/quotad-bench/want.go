package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
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
	posted := func(labels model.Metric) bool { return labels["method"] == "POST" }
	status := func(labels model.Metric) bool {
		return posted(labels) && slices.Contains(strings.Fields(w.status), string(labels["status"]))
	}
	if err := mostly(grown(before, after, requestsMetric, posted), grown(before, after, requestsMetric, status), cut); err != nil {
		return fmt.Errorf("%w of status %s", err, w.status)
	}
	if w.outcome == "" {
		return nil
	}
	outcome := func(labels model.Metric) bool { return string(labels["outcome"]) == w.outcome }
	if err := mostly(grown(before, after, hitsMetric, all), grown(before, after, hitsMetric, outcome), cut*hitsEach); err != nil {
		return fmt.Errorf("%w %s", err, w.outcome)
	}
	return nil
}

// mostly looks whether of all that was counted enough is good.
func mostly(total, good float64, cut int) error {
	if total == 0 || total-good > few*total+float64(cut) {
		return fmt.Errorf("%w: only %.0f of %.0f are", errAnswers, good, total)
	}
	return nil
}
