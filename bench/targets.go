package main

import "fmt"

// A target is something to reach: the floor is to be met, the aim is what the design
// should allow.
type target struct {
	row     string
	measure measure
	floor   float64
	aim     float64 // 0: there is none beyond the floor
}

// A measure is a number of a report.
type measure struct {
	name, unit string
	atMost     bool // less is better
	of         func(r *report, row string) (value float64, known bool)
}

var (
	ratioMeasure = measure{name: "ratio", of: ofRow(func(r *result) (float64, bool) { return r.Ratio.Median, true })}
	p99Measure   = measure{name: "p99 over the handler's at half the peak", unit: "ms", atMost: true, of: ofRow(func(r *result) (float64, bool) {
		if r.Latency == nil {
			return 0, false
		}
		return r.Latency.Over.Median, true
	})}
	allocationsMeasure = measure{name: "allocations per hit", atMost: true, of: ofCost(func(c *cost) float64 { return c.Allocations })}
	walMeasure         = measure{name: "WAL per hit", unit: "bytes", atMost: true, of: ofCost(func(c *cost) float64 { return c.WAL })}
	hotMeasure         = measure{name: "HOT updates under long load", unit: "%", of: func(r *report, _ string) (float64, bool) {
		if r.Long == nil {
			return 0, false
		}
		return r.Long.HOT, true
	}}
	memoryMeasure = measure{
		name: "quotad's memory (VmHWM), all customers hit, and their rows' load", unit: "MB", atMost: true,
		of: func(r *report, _ string) (float64, bool) {
			if r.Memory == nil || r.Memory.Many.Peak == 0 {
				return 0, false
			}
			return max(r.Memory.Many.Peak, r.Memory.Loaded.Peak), true
		},
	}
)

// targets are what there is to reach.
var targets = []target{
	{mainRow, ratioMeasure, 0.42, 0.58},
	{"admitted, 2 limits, 64 connections", ratioMeasure, 0.34, 0.48},
	{"with ids", ratioMeasure, 0.22, 0.30},
	{millionRow, ratioMeasure, 0.34, 0.50},
	{"one hot customer", ratioMeasure, 0.55, 0.70},
	{"refused from cache, one customer", ratioMeasure, 0.80, 0.90},
	{"refused from cache, 10,000 customers", ratioMeasure, 0.80, 0.90},
	{"batch of 100 over one customer", ratioMeasure, 5, 10},
	{"batch of 100 over 100 customers", ratioMeasure, 0.8, 1.5},
	{mainRow, p99Measure, 4, 0},
	{mainRow, allocationsMeasure, 40, 0},
	{mainRow, walMeasure, 300, 0},
	{mainRow, hotMeasure, 99, 0},
	{millionRow, memoryMeasure, 150, 0},
}

// met says whether a value reaches what it should.
func (m measure) met(value, wanted float64) bool {
	if m.atMost {
		return value <= wanted
	}
	return value >= wanted
}

// missed is the verdict on a value under its floor.
const missed = "missed"

// verdict puts a value beside a target's floor and aim.
func (t target) verdict(value float64) string {
	switch {
	case !t.measure.met(value, t.floor):
		return missed
	case t.aim != 0 && !t.measure.met(value, t.aim):
		return "floor met"
	case t.aim != 0:
		return "aim met"
	default:
		return "met"
	}
}

// shown is a number of the measure with its unit.
func (m measure) shown(value float64) string {
	switch {
	case value == 0:
		return "–"
	case m.unit == "" && !m.atMost:
		return fmt.Sprintf("%.2f", value)
	case value >= 100:
		return whole(value) + unit(m.unit)
	}
	return fmt.Sprintf("%.3g", value) + unit(m.unit)
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " " + u
}

// targetOf is what the ratio of a row is to reach.
func targetOf(row string) (t target, ok bool) {
	for _, t := range targets {
		if t.row == row && t.measure.name == ratioMeasure.name {
			return t, true
		}
	}
	return target{}, false
}

func ofRow(of func(*result) (float64, bool)) func(*report, string) (float64, bool) {
	return func(r *report, row string) (float64, bool) {
		for i := range r.Rows {
			if r.Rows[i].Name == row && r.Rows[i].Ratio.Median > 0 {
				return of(&r.Rows[i])
			}
		}
		return 0, false
	}
}

func ofCost(of func(*cost) float64) func(*report, string) (float64, bool) {
	return ofRow(func(r *result) (float64, bool) {
		if r.Cost == nil {
			return 0, false
		}
		return of(r.Cost), true
	})
}
