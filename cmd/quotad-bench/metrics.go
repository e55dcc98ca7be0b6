package main

import (
	"bytes"
	"maps"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are samples of one node, or of several behind each other.
type metrics model.Vector

// parseMetrics reads Prometheus' text format.
func parseMetrics(text []byte) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	return metrics(samples), err
}

// sum adds up a metric's series, of which some may be left out.
func (m metrics) sum(name string, in func(labels model.Metric) bool) (sum float64) {
	for _, sample := range m {
		if sample.Metric[model.MetricNameLabel] == model.LabelValue(name) && in(sample.Metric) {
			sum += float64(sample.Value)
		}
	}
	return sum
}

// grown is by how much the sum of a metric's series became more.
func grown(before, after metrics, name string, in func(labels model.Metric) bool) float64 {
	return after.sum(name, in) - before.sum(name, in)
}

// all takes in every series.
func all(model.Metric) bool { return true }
