package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sample() report {
	return report{
		At: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Version: "v1", Rounds: 5, Seconds: 3, Warm: 2,
		Machine: machine{CPU: "Some CPU", Cores: 2, PostgreSQL: "15.1", Settings: map[string]string{"fsync": "on"}},
		Rows: []result{
			{
				Name: mainRow, Connections: 256, Ratio: spread{0.5, 0.45, 0.55}, Hits: spread{40_000, 1, 2}, Handler: spread{80_000, 1, 2},
				Cost: &cost{Allocations: 45, RoundTrips: 0.0104, AtLeast: true, WAL: 250, Checkpoint: true}, Latency: &latency{Rate: 20_000, Over: spread{1.5, 1, 2}},
			},
			{Name: "with ids", Failed: "with ids: nobody was there"},
		},
		Memory: &memory{
			Few: footprint{10_000, 40, 50}, Many: footprint{1_000_000, 110, 140}, Loaded: footprint{1_000_000, 120, 151}, Ready: 16_384,
			Each: weights{Ready: 777, Packed: 66}, Counter: 256,
		},
		Long: &long{HOT: 99.5},
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := sample()
	text := r.markdown()
	for _, want := range []string{
		"| " + mainRow + " | 0.42 | 0.58 | 0.50 | floor met |",
		"| " + mainRow + ": allocations per hit | ≤ 40 | – | 45 | missed |",
		"| " + mainRow + ": p99 over the handler's at half the peak | ≤ 4 ms | – | 1.5 ms | met |",
		"| with ids | 0.22 | 0.30 | not measured |  |",
		"| no-work handler | 256 | 1 | | | 80,000 |",
		"| " + mainRow + " | 256 | 0.50 | 0.45–0.55 | 40,000 | 80,000 |",
		"| with ids | | failed | | | |",
		"250 *", "| ≥ 0.0104 |", "| 1,000,000 | 110 | 140 |", "| 1,000,000, and then by the rows' load | 120 | 151 |",
		"and their rows' load | ≤ 150 MB | – | 151 MB | missed |", "Some CPU, 2 cores", "256 bytes on disk", "99.50 % of updates HOT",
		"16,384 of them are kept ready in memory, at 777 bytes each", "others packed, at 66 bytes each",
		"the median of 5 rounds of 3 s, after 2 to 4 runs of 2 s to warm it up; the long load: 10 minutes.",
		"| " + mainRow + ": HOT updates under long load | ≥ 99 % | – | 99.5 % | met |",
		"\\* a checkpoint began meanwhile", "by the minute", "; no checkpoint began meanwhile.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Nothing is said of what there was not.
func TestMarkdownOfLess(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Rows[0].Cost.Checkpoint, r.Rows[0].Cost.AtLeast = false, false
	r.Memory.Loaded = footprint{}
	r.Memory.Each = weights{}
	r.Long = &long{HOT: 99.5, Checkpoint: true, Hits: spread{23_262, 23_262, 23_262}}
	r.Flags, r.Rounds = []string{"--lanes=2"}, 1
	text := r.markdown()
	for _, want := range []string{
		"Each row: 1 round of 3 s", "the long load: 10 minutes; not the defaults, but `--lanes=2`.",
		"| 0.0104 |", "| ≤ 150 MB | – | 140 MB | met |",
		"\n10 minutes of the first row's load: 23,262 hits/s (23,262–23,262 by the minute), 99.50 %", "behind a checkpoint.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, wrong := range []string{`\*`, "250 *", "kept ready", "≥ 0.0104", "the rows' load |"} {
		if strings.Contains(text, wrong) {
			t.Errorf("%q in\n%s", wrong, text)
		}
	}
	if r.Long = nil; !strings.Contains(r.markdown(), "no long load;") || !strings.Contains(r.markdown(), "| ≥ 99 % | – | not measured |") {
		t.Errorf("a long load that was not\n%s", r.markdown())
	}
}

// What people write around the tables stays.
func TestBetween(t *testing.T) {
	t.Parallel()
	first := between("# Title\n\nProse.\n", "one\n")
	want := "# Title\n\nProse.\n\n" + beginMark + "\none\n" + endMark + "\n"
	if first != want {
		t.Errorf("%q", first)
	}
	second := between(strings.Replace(first, "Prose.", "More.", 1)+"Behind.\n", "two\n")
	if second != "# Title\n\nMore.\n\n"+beginMark+"\ntwo\n"+endMark+"\nBehind.\n" {
		t.Errorf("%q", second)
	}
}

func TestWriteReport(t *testing.T) {
	t.Parallel()
	b := &bench{options: &options{docs: filepath.Join(t.TempDir(), "docs")}, report: sample()}
	for range 2 {
		if err := b.writeReport(); err != nil {
			t.Fatal(err)
		}
	}
	document, err := os.ReadFile(filepath.Join(b.docs, "README.md"))
	if err != nil || strings.Count(string(document), beginMark) != 1 {
		t.Errorf("%v: %s", err, document)
	}
	latest, err := os.ReadFile(filepath.Join(b.docs, "latest.json"))
	if err != nil || !strings.Contains(string(latest), `"verdict": "floor met"`) {
		t.Errorf("%v: %s", err, latest)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &bench{out: &out}
	b.printHead()
	for _, r := range sample().Rows {
		b.printRow(r)
	}
	for _, want := range []string{"40,000", "0.500", "(0.450–0.550)", "0.42", "0.58", "p99 over it 1.50", "FAILED with ids: nobody was there"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 999.6: "1,000", 12: "12", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := whole(v); got != want {
			t.Errorf("%v: %s, not %s", v, got, want)
		}
	}
}
