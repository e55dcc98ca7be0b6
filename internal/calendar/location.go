package calendar

import (
	"errors"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // for machines (and containers) without zoneinfo
)

// ErrUnknownZone says that a name is not one of an IANA timezone.
var ErrUnknownZone = errors.New("unknown timezone")

// The longest IANA name has 32 bytes, and none has more than three parts.
const (
	maxZoneName  = 64
	maxZoneParts = 3
)

// Loading a zone reads and parses a file, so zones are kept. There are about
// 600 names; the bound is for file systems that ignore case, where a name has
// thousands of spellings.
const maxZonesKept = 1024

var zones = struct {
	sync.RWMutex
	byName map[string]*time.Location
}{byName: make(map[string]*time.Location)}

// Location returns the zone of an IANA name such as "Europe/Berlin" or "UTC";
// the same name gives the same pointer, so that it may serve as a map key.
// Anything else is ErrUnknownZone: the empty name and "Local", which
// time.LoadLocation takes, paths, and what a zoneinfo directory holds beside
// zones (its right/ tree counts leap seconds, its localtime is the machine's).
func Location(name string) (*time.Location, error) {
	zones.RLock()
	loc := zones.byName[name]
	zones.RUnlock()
	if loc != nil {
		return loc, nil
	}
	if !isZoneName(name) {
		return nil, fmt.Errorf("%w: %.80q", ErrUnknownZone, name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		// The cause is left out: it tells of the machine's files, and it is
		// "unknown" to the caller whichever way the look-up failed.
		return nil, fmt.Errorf("%w: %q", ErrUnknownZone, name)
	}
	return keepZone(name, loc), nil
}

// keepZone remembers a loaded zone and returns the one to use: the first, when
// several callers loaded it at once.
func keepZone(name string, loc *time.Location) *time.Location {
	zones.Lock()
	defer zones.Unlock()
	if first := zones.byName[name]; first != nil {
		return first
	}
	if len(zones.byName) < maxZonesKept {
		zones.byName[name] = loc
	}
	return loc
}

// isZoneName reports whether a name has the form of an IANA name: one to three
// parts between slashes, each a letter followed by letters, digits, "_+-".
func isZoneName(name string) bool {
	switch name {
	case "", "Local", "localtime", "posixrules", "Factory":
		return false
	}
	if len(name) > maxZoneName {
		return false
	}
	parts, first, start := 1, "", 0
	for i := range len(name) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z':
		case i > start && ('0' <= c && c <= '9' || c == '_' || c == '+' || c == '-'):
		case i > start && c == '/':
			if parts == 1 {
				first = name[:i]
			}
			parts, start = parts+1, i+1
		default:
			return false
		}
	}
	return start < len(name) && parts <= maxZoneParts && first != "right" && first != "posix"
}
