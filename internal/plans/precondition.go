package plans

import (
	"slices"
	"strconv"
)

// Precondition is what the request's If-Match and If-None-Match said.
type Precondition struct {
	Given bool     // If-Match
	Any   bool     // If-Match: *
	ETags []string // of If-Match, unquoted: one of them must be the present one
	None  bool     // If-None-Match: *
}

// Check checks a precondition against the thing that is to be written. tag is the thing's
// present entity tag.
func (p Precondition) Check(exists bool, tag string) error {
	switch {
	case p.Given && !exists, p.Given && !p.Any && !slices.Contains(p.ETags, tag):
		return ErrPrecondition
	case exists && p.None:
		return ErrExists
	case exists && !p.Given:
		return &IfMatchError{ETag: tag}
	}
	return nil
}

func etag(n int64) string { return strconv.FormatInt(n, 10) }
