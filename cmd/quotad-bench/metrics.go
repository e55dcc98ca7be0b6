package main

import (
	"bufio"
	"bytes"
	"strconv"
	"strings"
)

// metrics are values by series, as Prometheus' text format has them: name{label="…"}.
type metrics map[string]float64

// parseMetrics reads that format; what it cannot read it leaves out.
func parseMetrics(text []byte) metrics {
	m := metrics{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			m[line[:at]] = value
		}
	}
	return m
}

// add sums two nodes' metrics.
func (m metrics) add(other metrics) {
	for series, value := range other {
		m[series] += value
	}
}

// label is the value of a series' label, empty when it has none.
func label(series, name string) string {
	_, rest, ok := strings.Cut(series, name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
