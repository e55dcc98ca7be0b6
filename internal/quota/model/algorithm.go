package model

import (
	"math"
	"slices"
	"strings"

	"quotad/internal/calendar"
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
	inPeriod                    // two integers, once somebody has counted what is booked: a cap
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

// taken is what was taken of a bucket and has not come back, units. Unlike used it is not held to the
// capacity: an overrun takes more, a soft limit admits more, and an edit may lower a burst.
func (l *Limit) taken(b bucket, m moment) int64 { return l.Capacity() - l.rules.headroom(l, b, m) }

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

func (counted) headroom(l *Limit, b bucket, _ moment) int64  { return l.Limit - b.level }
func (counted) used(_ *Limit, b bucket, _ moment) int64      { return b.level }
func (counted) countable(_ *Limit, b bucket, _ moment) int64 { return softCap - b.level }
func (counted) sound(_ *Limit, b bucket, _ []int64) bool     { return counts(b.level) }

// bucket is the state of one limit at one instant. What the two integers mean is the
// algorithm's own affair; level 0 and aux 0 is an untouched one.
type bucket struct{ level, aux int64 }

// moment is the instant that buckets stand at, and the calendar of their customer, by
// which some windows start; of a sliding log also what is stored after its bucket.
type moment struct {
	at      int64 // µs
	periods *calendar.Periods
	log     []int64
	holds   *Holds // on the counter
}

// moment is an instant of the target's customer.
func (t *Target) moment(at int64) moment {
	return moment{at: at, periods: &t.Periods}
}

// softCap is where the level of a limit that went past its units stops, so that no sum of two
// leaves 64 bits; that of a token bucket stops at their end.
const softCap = int64(1)<<62 - 1

// MostAhead is how much later than the clock a counter's last charge may be, µs. Nodes agree on
// PostgreSQL's time far better than this: beyond it the clock itself went back.
const MostAhead = int64(1e6)

// Present is, as the instant of a charge, whatever counts now.
const Present = int64(math.MaxInt64)

// rules is what an algorithm knows of buckets. Each has a file of its own, with its descriptor.
type rules interface {
	// stand is a bucket stored at the instant since as it stands at m.at ≥ since.
	stand(l *Limit, stored bucket, since int64, m moment) bucket
	// bringBack is a bucket stored at the instant since, later than m.at, as it is to be stored at m.at:
	// whatever counts in it goes on counting, in the window of m.at. Of a sliding log see logBrought.
	bringBack(l *Limit, stored bucket, since int64, m moment) bucket
	// headroom is the largest cost the limit admits; below 0 where it is exceeded.
	headroom(l *Limit, b bucket, m moment) int64
	// charge adds a cost, as far as 64 bits can count, or takes back (below 0) what was added at
	// the same instant.
	charge(l *Limit, b bucket, cost int64, m moment) bucket
	// used is what counts against the limit, in units.
	used(l *Limit, b bucket, m moment) int64
	// wait is how long, in µs, until the limit admits a cost that it does not admit now,
	// if nothing else happens, or Never.
	wait(l *Limit, b bucket, cost int64, m moment) int64
	// resetAt is the first instant at which the whole quota would be there again: now for
	// an untouched bucket, and for a closed one, whose whole quota is nothing; NoReset when
	// it never is.
	resetAt(l *Limit, b bucket, m moment) int64
	// giveBack takes a cost off a bucket that stands at m.at and was charged with it at the
	// instant charged ≤ m.at, as far as it still counts; present: off what counts now, the
	// newest first. Of a sliding log see logWithout.
	giveBack(l *Limit, b bucket, charged, cost int64, m moment) bucket
	// backdate adds a cost to a bucket that stands at m.at, as of the instant at ≤ m.at, as
	// far as it still counts and whether it fits or not. Of a sliding log see backdated.
	backdate(l *Limit, b bucket, at, cost int64, m moment) bucket
	// countsFrom is the first instant whose charges may still count in a bucket that stands
	// at m.at.
	countsFrom(l *Limit, b bucket, m moment) int64
	// began is when the running window began; false where none runs, or windows have no start.
	began(l *Limit, b bucket, m moment) (start int64, runs bool)
	// sound reports whether the algorithm may have stored the bucket, and after it the log.
	sound(l *Limit, b bucket, log []int64) bool
	// countable is the largest cost that a soft limit can count wholly.
	countable(l *Limit, b bucket, m moment) int64
	// lifetime and mostIn: see Limit.Lifetime and Limit.MostIn.
	lifetime(l *Limit) int64
	mostIn(l *Limit, time int64, whole bool) int64
}

// BucketLen is the number of integers a bucket takes in a counter's state: the limit's
// identity, the bucket, and until when it says something, see until. After that of a log, whose
// identity is below 0, come aux more.
const BucketLen = 4

// BucketID tells the limit's bucket from others in a row. Where a customer's billing periods
// were changed, a bucket by billing period starts again: its units are those of the hours
// in the period, however many of them were charged at that very instant.
func (l *Limit) BucketID(m moment) int64 {
	if !l.byPeriod {
		return l.ID
	}
	from, changed := m.periods.Since(m.at)
	if !changed {
		return l.ID
	}
	return l.ID ^ int64(mix(uint64(from))>>1)
}

// findBucket finds the bucket of an identity in a counter's state, and its log. One that is
// not there is untouched.
func findBucket(state []int64, id int64) (b bucket, log []int64) {
	for i := 0; i+BucketLen <= len(state); i += BucketLen {
		more := 0
		if state[i] < 0 {
			more = int(state[i+2])
		}
		if state[i] == id {
			return bucket{state[i+1], state[i+2]}, state[i+BucketLen : i+BucketLen+more]
		}
		i += more
	}
	return bucket{}, nil
}

// stand is the limit's bucket in a counter's state of instant since, as it stands at
// m.at ≥ since, and its log.
func (l *Limit) stand(state []int64, since int64, m moment) (bucket, []int64) {
	b, log := findBucket(state, l.BucketID(m))
	m.log = log
	return l.rules.stand(l, b, since, m), log
}

// wait is the shortest time in µs after which the limit admits cost if nothing else
// happens; 0 when it does now, Never when it never will.
func (l *Limit) wait(b bucket, cost int64, m moment) int64 {
	if cost <= max(0, l.rules.headroom(l, b, m)) {
		return 0
	}
	return l.rules.wait(l, b, cost, m)
}

// AddUpTo is a sum that stops where 64 bits do.
func AddUpTo(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
