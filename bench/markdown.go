package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What the bench writes into README.md is between these marks; the rest is people's.
const (
	beginMark = "<!-- begin: written by make bench -->"
	endMark   = "<!-- end -->"
)

// between puts text between the marks of a document, or after it when it has none.
func between(document, text string) string {
	head, rest, ok := strings.Cut(document, beginMark)
	_, tail, closed := strings.Cut(rest, endMark)
	if !ok || !closed {
		head, tail = document, "\n"
		if head != "" {
			head = strings.TrimRight(head, "\n") + "\n\n"
		}
	}
	return head + beginMark + "\n" + text + endMark + tail
}

// markdown is the report as tables.
func (r *report) markdown() string {
	var b strings.Builder
	r.writeMachine(&b)
	r.writeTargets(&b)
	r.writeRows(&b)
	r.writeLatency(&b)
	r.writeCosts(&b)
	r.writeMemory(&b)
	return b.String()
}

func (r *report) writeMachine(b *strings.Builder) {
	m := r.Machine
	fmt.Fprintf(b, "\n%s, quotad %s. %s\n\n", r.At.Format("2006-01-02"), r.Version, r.howRun())
	fmt.Fprintf(b, "%s, %d cores, %.0f GB; %s; %s; PostgreSQL %s; wrk %s; Redis %s. Writing a page and flushing it takes %.2f ms here; what a slower disk takes longer is added to every hit's latency, which waits for a flush, and for the one under way when it comes.\n\n",
		m.CPU, m.Cores, m.Memory, m.System, m.Go, m.PostgreSQL, m.Wrk, m.Redis, m.Flush)
	b.WriteString("The embedded server's settings:")
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		fmt.Fprintf(b, " `%s=%s`", name, m.Settings[name])
	}
	b.WriteString(".\n")
}

// howRun says how long everything was.
func (r *report) howRun() string {
	text := fmt.Sprintf("Each row: %s of %.0f s, after 2 to %d runs of %.0f s to warm it up; ", rounds(r.Rounds), r.Seconds, maxWarmUps, r.Warm)
	if r.Long == nil {
		text += "no long load"
	} else {
		text += fmt.Sprintf("the long load: %d minutes", longMinutes)
	}
	if len(r.Flags) > 0 {
		text += "; not the defaults, but `" + strings.Join(r.Flags, " ") + "`"
	}
	return text + "."
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("the median of %d rounds", n)
}

func (r *report) writeTargets(b *strings.Builder) {
	b.WriteString("\n### What there was to reach\n\nFloor and aim were set beforehand, for a machine of two cores with everything on it. The floor is what the design must reach; the aim is what it should allow. Where no measure is named it is the ratio.\n\n| what | floor | aim | measured | |\n| --- | --- | --- | --- | --- |\n")
	for _, t := range targets {
		value, known := t.measure.of(r, t.row)
		measured, verdict := "not measured", ""
		if known {
			measured, verdict = t.measure.shown(value), t.verdict(value)
		}
		what := t.row
		if t.measure.name != ratioMeasure.name {
			what += ": " + t.measure.name
		}
		fmt.Fprintf(b, "| %s | %s%s | %s | %s | %s |\n", what, t.sign(), t.measure.shown(t.floor), t.measure.shown(t.aim), measured, verdict)
	}
}

func (t target) sign() string {
	if t.measure.atMost {
		return "≤ "
	}
	if t.aim == 0 {
		return "≥ "
	}
	return ""
}

func (r *report) writeRows(b *strings.Builder) {
	b.WriteString("\n### Peak, closed loop\n\nCompare ratios, not hits/s: the machine's own speed moves during the run. The rows of 2 and 4 nodes have no more cores than the others: they show what contention costs, not how quotad scales.\n\n| | connections | ratio | least–most | hits/s | handler, requests/s |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range r.Rows {
		if r.Rows[i].Name == mainRow {
			h := r.Rows[i].Handler
			fmt.Fprintf(b, "| no-work handler | %d | 1 | | | %s |\n", r.Rows[i].Connections, whole(h.Median))
		}
	}
	for _, row := range r.Rows {
		if row.Ratio.Median == 0 {
			fmt.Fprintf(b, "| %s | | failed | | | |\n", row.Name)
			continue
		}
		fmt.Fprintf(b, "| %s | %d | %.2f | %.2f–%.2f | %s | %s |\n", row.Name, row.Connections,
			row.Ratio.Median, row.Ratio.Min, row.Ratio.Max, whole(row.Hits.Median), whole(row.Handler.Median))
	}
}

func (r *report) writeLatency(b *strings.Builder) {
	b.WriteString("\n### Latency at half of a row's peak, open loop, ms\n\n| | requests/s | p50 | p90 | p99 | p99.9 | most | p99 over the handler's: median (least–most) of the rounds' differences |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, row := range r.Rows {
		l := row.Latency
		if l == nil {
			if row.Failed != "" && row.Ratio.Median > 0 {
				fmt.Fprintf(b, "| %s | failed | | | | | | |\n", row.Name)
			}
			continue
		}
		line := func(name string, q quantiles, over string) {
			fmt.Fprintf(b, "| %s | %s | %.2f | %.2f | %.2f | %.2f | %.1f | %s |\n", name, whole(l.Rate), q.P50, q.P90, q.P99, q.P999, q.Max, over)
		}
		line("no-work handler", l.Handler, "")
		line(row.Name, l.Row, fmt.Sprintf("%.2f (%.2f–%.2f)", l.Over.Median, l.Over.Min, l.Over.Max))
	}
}

func (r *report) writeCosts(b *strings.Builder) {
	b.WriteString("\n### What a hit takes\n\nAverages over all rounds; hits/s above are medians of them, so do not multiply the two.\n\n| | CPU µs: quotad | PostgreSQL | load maker | allocations | bytes allocated | round trips | transactions | WAL bytes | HOT % |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	note := ""
	for _, row := range r.Rows {
		c := row.Cost
		if c == nil {
			continue
		}
		wal := whole(c.WAL)
		if c.Checkpoint {
			wal, note = wal+" *", "\n\\* a checkpoint began meanwhile, behind which pages are logged whole.\n"
		}
		trips := fmt.Sprintf("%.4f", c.RoundTrips)
		if c.AtLeast {
			trips = "≥ " + trips
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %.4f | %s | %s |\n", row.Name,
			decimal(c.QuotadCPU), decimal(c.ServerCPU), decimal(c.LoadCPU), decimal(c.Allocations), whole(c.AllocatedSize),
			trips, c.Transactions, wal, decimal(c.HOT))
	}
	b.WriteString(note)
}

// decimal prints a number with one digit after the point, and none where there is nothing
// to say.
func decimal(v float64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", v)
}

func (r *report) writeMemory(b *strings.Builder) {
	if m := r.Memory; m != nil {
		fmt.Fprintf(b, "\n### Memory and disk\n\n| customers hit once each, by a new quotad | resident, MB | at most (VmHWM), MB |\n| --- | --- | --- |\n")
		line := func(f footprint, when string) {
			fmt.Fprintf(b, "| %s%s | %.0f | %.0f |\n", whole(float64(f.Customers)), when, f.Now, f.Peak)
		}
		line(m.Few, "")
		line(m.Many, "")
		if m.Loaded.Customers > 0 {
			line(m.Loaded, ", and then by the rows' load")
		}
		if m.Each.Ready > 0 {
			fmt.Fprintf(b, "\n%s of them are kept ready in memory, at %s bytes each with their counters, and others packed, at %s bytes each with their index: by what a quotad that collects its garbage all the time grew.\n",
				whole(m.Ready), whole(m.Each.Ready), whole(m.Each.Packed))
		}
		fmt.Fprintf(b, "\nA counter, written once and before any vacuum, takes %.0f bytes on disk, table and index; docs/decisions/counter-rows.md has what it takes after one.\n",
			m.Counter)
	}
	if r.Long != nil {
		fmt.Fprintf(b, "\n%s", r.Long)
	}
}
