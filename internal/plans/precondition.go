package plans

import (
	"slices"
	"strconv"
)

// Precondition contains the If-Match and If-None-Match headers of a request.
type Precondition struct {
	Given bool     // the request has If-Match
	Any   bool     // the request has If-Match: *
	ETags []string // entity tags of If-Match, unquoted; the current tag must be among them
	None  bool     // the request has If-None-Match: *
}

// Check checks a precondition against the object to be written. tag is the object's current entity tag.
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
