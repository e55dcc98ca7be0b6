package model

import (
	"slices"
	"strings"
)

// Algorithm is how a limit counts. The numbers are part of limits' identities: they
// never change.
type Algorithm int64

// The algorithms. Their names in JSON are those of String.
const (
	FixedWindow   Algorithm = 1
	TokenBucket   Algorithm = 2
	SlidingWindow Algorithm = 3
	SlidingLog    Algorithm = 4
	Allocation    Algorithm = 5
	Concurrency   Algorithm = 6
)

// algorithms has the descriptor of each, in the order in which people are shown them.
var algorithms = []*descriptor{
	&fixedWindowDescriptor, &slidingWindowDescriptor, &slidingLogDescriptor, &tokenBucketDescriptor, &allocationDescriptor, &concurrencyDescriptor,
}

// descriptor says what an algorithm is, beside its rules. It stands in the algorithm's file.
type descriptor struct {
	facts
	number   Algorithm
	name     string // in JSON
	window   windowForm
	takes    []string // the fields of a Spec that not all algorithms have
	hours    hoursForm
	compared bool // the playground compares it with others

	// compile reads what is the algorithm's own, once the window was read, and returns the rules.
	compile func(l *Limit, s *Spec, refuse refusal) rules
	// reduce prepares a limit with which nothing is wrong, or says why 64 bits cannot hold it. Nil: nothing to do.
	reduce func(l *Limit, s *Spec) *FieldError
	// defaults fills in the fields of its own that a Spec leaves out. Nil: there are none.
	defaults func(s *Spec)
}

// facts are what is asked with each hit: a Limit has a copy.
type facts struct {
	kept       storage
	stays      bool // no unit comes back by waiting
	refills    bool // units come back all the time, up to Burst; a bucket does not know whose they were
	twoWindows bool // aux is what was used in the window before
}

// storage is where a limit's units are counted.
type storage int8

const (
	inBucket storage = iota + 1 // two integers
	inLog                       // a bucket, and a list of blocks after it
	inHolds                     // open reservations alone: there is no bucket, and hits do not know the limit
)

// refusal notes what is wrong with a field.
type refusal func(field, format string, args ...any)

// windowForm is what an algorithm takes as its window.
type windowForm int8

const (
	noWindow windowForm = iota + 1
	durationWindow
	anyWindow // a duration, or the calendar's
)

// hoursForm is what the usage of hours, whose hits are not known, says of an algorithm.
type hoursForm int8

const (
	nothingByHour hoursForm = iota + 1
	spreadByHour            // the units of an hour have to be spread over it
	wholeByHour             // all of it, where windows by the clock fill the hour
)

// is the algorithm's descriptor. The number is an algorithm's.
func (a Algorithm) is() *descriptor {
	return algorithms[slices.IndexFunc(algorithms, func(d *descriptor) bool { return d.number == a })]
}

// named finds a descriptor by its algorithm's name in JSON; nil: there is none.
func named(name string) *descriptor {
	for _, d := range algorithms {
		if d.name == name {
			return d
		}
	}
	return nil
}

func namesOf(which func(d *descriptor) bool) (names []string) {
	for _, d := range algorithms {
		if which(d) {
			names = append(names, d.name)
		}
	}
	return names
}

// AlgorithmNames are the names of all algorithms, in the order in which people are shown them.
func AlgorithmNames() []string { return namesOf(func(*descriptor) bool { return true }) }

// ComparedAlgorithms are the names of those that the playground compares.
func ComparedAlgorithms() []string { return namesOf(func(d *descriptor) bool { return d.compared }) }

// RefilledAlgorithms are the names of those whose units come back all the time, see Refills.
func RefilledAlgorithms() []string { return namesOf(func(d *descriptor) bool { return d.refills }) }

// TakenBy are the names of the algorithms that alone have a field of a Spec; none: all have it.
func TakenBy(field string) []string {
	return namesOf(func(d *descriptor) bool { return slices.Contains(d.takes, field) })
}

// supported names all algorithms in a sentence.
func supported() string {
	names := AlgorithmNames()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// AlgorithmNamed is the algorithm of a name in JSON; 0: there is none.
func AlgorithmNamed(name string) Algorithm {
	if d := named(name); d != nil {
		return d.number
	}
	return 0
}

func (a Algorithm) String() string { return a.is().name }

// OnlyHolds reports whether open reservations alone are counted, by their ttl.
func (a Algorithm) OnlyHolds() bool { return a.is().kept == inHolds }

// Refills reports whether units come back all the time, up to a burst.
func (a Algorithm) Refills() bool { return a.is().refills }

// ByHour reports what hours of usage say of a limit: that it can be played with the units of each
// hour spread evenly, and that its windows start from zero by the clock, so that hours which they
// fill say all.
func (l *Limit) ByHour() (played, whole bool) {
	form := l.Algorithm.is().hours
	return form != nothingByHour, form == wholeByHour && !l.FirstHit
}

// Capacity is the largest cost that an untouched bucket admits, in units.
func (l *Limit) Capacity() int64 {
	if l.Algorithm.Refills() {
		return l.Burst
	}
	return l.Limit
}

// Lifetime is how long a hit counts at most, µs: of a log to the end of its block a precision
// longer. It is MaxWindow at most for a bucket that fills, and 0 where there is no window but the
// calendar's.
func (l *Limit) Lifetime() int64 { return l.rules.lifetime(l) }

// MostIn is the most units that the limit could admit in a time, µs. whole: the clock's windows of
// the limit fill it. The limit has a window that is a duration.
func (l *Limit) MostIn(time int64, whole bool) int64 { return l.rules.mostIn(l, time, whole) }

// WithDefaults is a Spec with what its algorithm takes for fields of its own that are left out.
func WithDefaults(s Spec) Spec {
	if d := named(s.Algorithm); d != nil && d.defaults != nil {
		d.defaults(&s)
	}
	return s
}

// counted is what algorithms share whose level is what counts against the limit.
type counted struct{}

func (counted) room(l *Limit, b bucket, _ moment) int64      { return l.Limit - b.level }
func (counted) used(_ *Limit, b bucket, _ moment) int64      { return b.level }
func (counted) countable(_ *Limit, b bucket, _ moment) int64 { return softCap - b.level }
func (counted) sound(_ *Limit, b bucket, _ []int64) bool     { return counts(b.level) }

// inWindows is the most units that windows admit in a time, µs. whole: windows fill the time.
func (l *Limit) inWindows(time int64, whole bool) int64 {
	windows := ceilDiv(time, l.Window)
	if !whole {
		windows++ // the time touches one window more
	}
	return mulUpTo(l.Limit, windows)
}
