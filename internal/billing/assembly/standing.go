package assembly

import (
	"fmt"
	"strings"
)

// Standing is what later invoices and credit notes made of a line. Amounts are in minor units.
type Standing struct {
	AmountMinor    int64     // the line's own
	CorrectedMinor int64     // Σ its corrections so far, of either sign
	UnusedMinor    int64     // what lines `unused` gave back of it, 0 or more
	NotedMinor     int64     // what credit notes took of it and of its corrections, 0 or more
	Of             *Standing // of a correction: the standing of the line that it corrects; else nil
}

// LeftMinor is what may still be given back of the line. It is below 0 where more was given back
// than the line came to.
func (s *Standing) LeftMinor() int64 {
	left := s.AmountMinor + s.CorrectedMinor - s.UnusedMinor - s.NotedMinor
	if s.Of != nil {
		left = min(left, s.Of.LeftMinor())
	}
	return left
}

// String says how LeftMinor comes about.
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
