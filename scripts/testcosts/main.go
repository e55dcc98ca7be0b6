// Command testcosts prints what the tests of each package cost, and compares that with what was recorded.
//
// The tests write a file of lines (scripts/measured.sh and internal/testkit/pgtest). A cost is processor
// time, of a package's test program and of all its children, divided by the time of a loop that is always
// the same and runs after each package. So a machine that is slow today changes nothing. The recorded
// costs are in costs.json, by the size of the tests and by package.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	recorded = "scripts/testcosts/costs.json"
	warnFrom = 1.15
	failFrom = 1.40
	// smallest is the processor time of a package, in seconds, from which a growth is judged: the time of a
	// shorter one is chance.
	smallest = 5
)

// A line is what one writer knows of a package. The other numbers are 0.
type line struct {
	Package   string  `json:"package"`
	CPU       float64 `json:"cpu_seconds"`
	Loop      float64 `json:"loop_seconds"`
	Servers   int     `json:"servers"`
	Databases int     `json:"databases"`
	Sessions  int     `json:"sessions"`
}

// costs are those of one run.
type costs struct {
	packages []line  // the dearest first
	loop     float64 // the mean time of the loop, in seconds
}

func main() {
	size := flag.String("size", "test", "the target whose tests wrote the file: test or test-more")
	compare := flag.Bool("compare", false, "compare with "+recorded+"; fail when a package costs 40 % more")
	record := flag.Bool("record", false, "write "+recorded)
	flag.Parse()
	if err := run(os.Stdout, *size, flag.Arg(0), *compare, *record); err != nil {
		fmt.Fprintln(os.Stderr, "testcosts:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, size, file string, compare, record bool) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("no costs to read (run make %s first): %w", size, err)
	}
	defer f.Close()
	run, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !compare && !record {
		run.print(out)
		return nil
	}
	all := map[string]map[string]float64{}
	text, err := os.ReadFile(recorded)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && (compare || !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	if compare {
		return run.compare(out, size, all[size])
	}
	all[size] = map[string]float64{}
	for _, p := range run.packages {
		all[size][p.Package] = float64(int(run.loops(p)*10)) / 10
	}
	text, err = json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(recorded, append(text, '\n'), 0o644) //nolint:gosec // a file of the repository
}

// read reads a file of costs. A package whose failed tests ran once more has further lines of processor
// time: the first one counts.
func read(from io.Reader) (*costs, error) {
	byName, run, loops := map[string]*line{}, &costs{}, 0
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%q is no line of costs: %w", lines.Text(), err)
		}
		p := byName[l.Package]
		if p == nil {
			p = &line{Package: l.Package}
			byName[l.Package] = p
		}
		if l.Loop > 0 {
			run.loop += l.Loop
			loops++
		}
		if p.CPU == 0 {
			p.CPU = l.CPU
		}
		if p.Servers == 0 {
			p.Servers, p.Databases, p.Sessions = l.Servers, l.Databases, l.Sessions
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if loops == 0 {
		return nil, errors.New("it has no processor times")
	}
	run.loop /= float64(loops)
	for _, p := range byName {
		run.packages = append(run.packages, *p)
	}
	slices.SortFunc(run.packages, func(a, b line) int {
		return cmp.Or(-cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Package, b.Package))
	})
	return run, nil
}

// loops returns the cost of a package, in times of the loop.
func (c *costs) loops(p line) float64 { return p.CPU / c.loop }

func (c *costs) print(out io.Writer) {
	fmt.Fprintf(out, "%-32s %9s %8s %8s %10s %9s\n", "package", "CPU-s", "loops", "servers", "databases", "sessions")
	sum := line{Package: "all"}
	for _, p := range append(c.packages, line{}) {
		if p.Package == "" {
			p = sum
		} else {
			sum.CPU += p.CPU
			sum.Servers += p.Servers
			sum.Databases += p.Databases
			sum.Sessions += p.Sessions
		}
		fmt.Fprintf(out, "%-32s %9.1f %8.1f %8d %10d %9d\n", p.Package, p.CPU, c.loops(p), p.Servers, p.Databases, p.Sessions)
	}
}

// compare prints each package that costs more than was recorded, and returns an error when one costs too
// much more.
func (c *costs) compare(out io.Writer, size string, was map[string]float64) error {
	if len(was) == 0 {
		return fmt.Errorf("%s has no costs of %s: run make record-costs on a quiet machine", recorded, size)
	}
	tooDear := 0
	for _, p := range c.packages {
		before, known := was[p.Package]
		now := c.loops(p)
		switch {
		case p.CPU < smallest:
		case !known:
			fmt.Fprintf(out, "WARNING %s %s: %.1f loops, and none were recorded\n", size, p.Package, now)
		case now >= before*failFrom && p.CPU >= 2*smallest:
			tooDear++
			fmt.Fprintf(out, "TOO DEAR %s %s: %.1f loops, where %.1f were recorded (%+.0f %%)\n", size, p.Package, now, before, 100*(now/before-1))
		case now >= before*warnFrom:
			fmt.Fprintf(out, "WARNING %s %s: %.1f loops, where %.1f were recorded (%+.0f %%)\n", size, p.Package, now, before, 100*(now/before-1))
		}
	}
	if tooDear > 0 {
		return fmt.Errorf("%d packages need at least 40 %% more processor time than recorded: find out why, or run make record-costs and give the reason in the commit", tooDear)
	}
	fmt.Fprintf(out, "%s: no package costs 40 %% more than recorded\n", size)
	return nil
}
