package calendar

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"quotad/internal/testkit/vectors"
)

// periodCase is one case of a vector file.
type periodCase struct {
	AnchorLocal string    `json:"anchor_local"`
	Unit        string    `json:"unit"`
	Count       int       `json:"count"`
	Timezone    string    `json:"timezone"`
	At          time.Time `json:"at"`
	Index       int       `json:"index"`
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
}

// checkPeriodCase is the runner: nil when the package agrees with the case.
func checkPeriodCase(c periodCase) error {
	anchor, err := ParseAnchor(c.AnchorLocal)
	if err != nil {
		return err
	}
	if got := anchor.String(); got != c.AnchorLocal {
		return fmt.Errorf("anchor %s is written as %s", c.AnchorLocal, got)
	}
	interval := Interval{Unit(c.Unit), c.Count}
	if err := interval.Validate(); err != nil {
		return err
	}
	loc, err := Location(c.Timezone)
	if err != nil {
		return err
	}
	index, start, end := Period(anchor, interval, loc, c.At.UnixMicro())
	if index != c.Index || start != c.Start.UnixMicro() || end != c.End.UnixMicro() {
		return fmt.Errorf("period holding %s: got %d [%s, %s), want %d [%s, %s)",
			rfc(c.At.UnixMicro()), index, rfc(start), rfc(end), c.Index, rfc(c.Start.UnixMicro()), rfc(c.End.UnixMicro()))
	}
	if b := Boundary(anchor, interval, loc, c.Index); b != start {
		return fmt.Errorf("boundary %d is %s, the period starts at %s", c.Index, rfc(b), rfc(start))
	}
	if b := Boundary(anchor, interval, loc, c.Index+1); b != end {
		return fmt.Errorf("boundary %d is %s, the period ends at %s", c.Index+1, rfc(b), rfc(end))
	}
	return nil
}

func TestVectorsPeriods(t *testing.T) {
	vectors.Each(t, "periods", func(t *testing.T, path string) {
		cases, err := vectors.Cases[periodCase](path)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if err := checkPeriodCase(c); err != nil {
				t.Errorf("case %d (%s, %d %s, %s): %v", i, c.AnchorLocal, c.Count, c.Unit, c.Timezone, err)
			}
		}
	})
}

// A runner that passes everything would pass the vectors, too.
func TestVectorsPeriodsRunnerNoticesCorruption(t *testing.T) {
	cases, err := vectors.Cases[periodCase](filepath.Join("testdata", "vectors", "periods", "anchors.json"))
	if err != nil {
		t.Fatal(err)
	}
	corruptions := map[string]func(*periodCase){
		"anchor":   func(c *periodCase) { c.AnchorLocal = c.AnchorLocal[:18] + "1" },
		"unit":     func(c *periodCase) { c.Unit = "fortnight" },
		"count":    func(c *periodCase) { c.Count = 0 },
		"interval": func(c *periodCase) { c.Unit, c.Count = "week", 5 },
		"timezone": func(c *periodCase) { c.Timezone = "Asia/Tehran" },
		"at":       func(c *periodCase) { c.At = c.End },
		"at early": func(c *periodCase) { c.At = c.Start.Add(-time.Microsecond) },
		"index":    func(c *periodCase) { c.Index++ },
		"start":    func(c *periodCase) { c.Start = c.Start.Add(time.Microsecond) },
		"end":      func(c *periodCase) { c.End = c.End.Add(-time.Microsecond) },
	}
	for name, corrupt := range corruptions {
		t.Run(name, func(t *testing.T) {
			for i, c := range cases {
				corrupt(&c)
				if checkPeriodCase(c) == nil {
					t.Errorf("case %d passes with a wrong %s", i, name)
				}
			}
		})
	}
}

// rfc writes an instant as the contract does.
func rfc(at int64) string { return time.UnixMicro(at).UTC().Format(time.RFC3339Nano) }
