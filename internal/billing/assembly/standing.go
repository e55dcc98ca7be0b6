package assembly

import (
	"fmt"
	"strings"
)

// Standing contains the amount of a line and the amounts by which later invoices and credit notes changed it,
// in minor units.
type Standing struct {
	AmountMinor    int64     // the line's own amount
	CorrectedMinor int64     // sum of its corrections so far, of either sign
	UnusedMinor    int64     // amount given back by `unused` lines, at least 0
	NotedMinor     int64     // amount credited by credit notes on it and its corrections, at least 0
	Of             *Standing // for a correction, the standing of the corrected line; otherwise nil
}

// LeftMinor returns how much of the line may still be given back. The result is negative if more than the
// line's amount was given back.
func (s *Standing) LeftMinor() int64 {
	left := s.AmountMinor + s.CorrectedMinor - s.UnusedMinor - s.NotedMinor
	if s.Of != nil {
		left = min(left, s.Of.LeftMinor())
	}
	return left
}

// String explains the calculation of LeftMinor.
func (s *Standing) String() string {
	b := new(strings.Builder)
	fmt.Fprintf(b, "its amount is %d", s.AmountMinor)
	for _, part := range []struct {
		minor int64
		text  string
	}{{s.CorrectedMinor, "corrections came to %d"}, {s.UnusedMinor, "%d was given back as unused"}, {s.NotedMinor, "credit notes took %d"}} {
		if part.minor != 0 {
			fmt.Fprintf(b, ", "+part.text, part.minor)
		}
	}
	if s.Of != nil {
		fmt.Fprintf(b, ". Of the line that it corrects, %d is left: %s", s.Of.LeftMinor(), s.Of)
	}
	return b.String()
}
