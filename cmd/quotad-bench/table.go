package main

import "fmt"

// The table that is printed as the rows are done.

const tableFormat = "%-50s %5s  %9s %9s  %6s %15s  %5s %5s  %6s %6s %7s %6s\n"

func (b *bench) printHead() {
	fmt.Fprintf(b.out, tableFormat, "", "conns", "handler/s", "hits/s", "ratio", "(min–max)", "floor", "aim",
		"CPU µs", "pg µs", "allocs", "WAL B")
}

func (b *bench) printRow(r result) {
	if r.Failed != "" {
		fmt.Fprintf(b.out, "FAILED %s\n", r.Failed)
	}
	if r.Ratio.Median == 0 {
		return
	}
	if r.Name == mainRow {
		fmt.Fprintf(b.out, tableFormat, "no-work handler", fmt.Sprint(r.Connections), whole(r.Handler.Median), "", "1.000", "", "", "", "", "", "", "")
	}
	cells := []any{
		r.Name, fmt.Sprint(r.Connections), whole(r.Handler.Median), whole(r.Hits.Median),
		fmt.Sprintf("%.3f", r.Ratio.Median), fmt.Sprintf("(%.3f–%.3f)", r.Ratio.Min, r.Ratio.Max), "", "", "", "", "", "",
	}
	if t, ok := targetOf(r.Name); ok {
		cells[6], cells[7] = t.measure.shown(t.floor), t.measure.shown(t.aim)
	}
	if c := r.Cost; c != nil {
		cells[8], cells[9] = fmt.Sprintf("%.1f", c.QuotadCPU), fmt.Sprintf("%.1f", c.ServerCPU)
		cells[10], cells[11] = fmt.Sprintf("%.1f", c.Allocations), whole(c.WAL)
	}
	fmt.Fprintf(b.out, tableFormat, cells...)
	if l := r.Latency; l != nil {
		fmt.Fprintf(b.out, "    open loop, %s/s: p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.1f ms; handler p99 %.2f; p99 over it %.2f (%.2f–%.2f) ms\n",
			whole(l.Rate), l.Row.P50, l.Row.P90, l.Row.P99, l.Row.P999, l.Row.Max, l.Handler.P99, l.Over.Median, l.Over.Min, l.Over.Max)
	}
}

// whole prints a number without decimals, in groups of three digits.
func whole(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
