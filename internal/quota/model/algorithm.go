package model

import (
	"math"
	"slices"
	"strings"

	"quotad/internal/calendar"
)

// Algorithm identifies how a limit counts. The numbers are part of the identities of limits, so they never change.
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

// algorithms contains the descriptor of each algorithm, in the order in which users see the algorithms.
var algorithms = []*descriptor{
	&fixedWindowDescriptor, &slidingWindowDescriptor, &slidingLogDescriptor, &tokenBucketDescriptor, &allocationDescriptor, &concurrencyDescriptor,
}

// descriptor describes an algorithm, except for its rules. Each descriptor is in the file of its algorithm.
type descriptor struct {
	facts
	number   Algorithm
	name     string // in JSON
	window   windowForm
	takes    []string // the fields of a Spec that not all algorithms have
	hours    hoursForm
	compared bool // the playground compares the algorithm with others

	// compile reads the algorithm's own fields after the window has been read, and returns the rules.
	compile func(l *Limit, s *Spec, refuse refusal) rules
	// reduce prepares a valid limit, or returns the reason why 64 bits cannot represent it. Nil means that there
	// is nothing to do.
	reduce func(l *Limit, s *Spec) *FieldError
	// defaults sets the algorithm's own fields that a Spec leaves out. Nil means that there are no such fields.
	defaults func(s *Spec)
}

// facts are the properties that every hit needs. Each Limit has a copy.
type facts struct {
	kept       storage
	stays      bool // no unit is replenished by time
	refills    bool // units are replenished continuously, up to Burst; a bucket does not know which hit used them
	twoWindows bool // aux is the number of units used in the previous window
}

// storage specifies where the units of a limit are counted.
type storage int8

const (
	inBucket storage = iota + 1 // two integers
	inLog                       // a bucket, and a list of blocks after it
	inHolds                     // only in open reservations: there is no bucket, and the limit does not apply to hits
	inPeriod                    // two integers, after the booked units have been counted: a cap
)

// refusal records an error in a field.
type refusal func(field, format string, args ...any)

// windowForm specifies which windows an algorithm accepts.
type windowForm int8

const (
	noWindow windowForm = iota + 1
	durationWindow
	anyWindow // a duration or a calendar window
)

// hoursForm specifies how an algorithm can be applied to hourly usage, whose single hits are unknown.
type hoursForm int8

const (
	nothingByHour hoursForm = iota + 1
	spreadByHour            // the units of an hour must be spread over the hour
	wholeByHour             // the sum of an hour suffices if clock-aligned windows fill the hour
)

// is returns the algorithm's descriptor. The number must belong to an algorithm.
func (a Algorithm) is() *descriptor {
	return algorithms[slices.IndexFunc(algorithms, func(d *descriptor) bool { return d.number == a })]
}

// named returns the descriptor of the algorithm with a name in JSON, or nil if there is no such algorithm.
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

// AlgorithmNames returns the names of all algorithms, in the order in which users see them.
func AlgorithmNames() []string { return namesOf(func(*descriptor) bool { return true }) }

// ComparedAlgorithms returns the names of the algorithms that the playground compares.
func ComparedAlgorithms() []string { return namesOf(func(d *descriptor) bool { return d.compared }) }

// RefilledAlgorithms returns the names of the algorithms whose units are replenished continuously, see Refills.
func RefilledAlgorithms() []string { return namesOf(func(d *descriptor) bool { return d.refills }) }

// TakenBy returns the names of the algorithms to which a field of a Spec is restricted. The result is empty if all
// algorithms have the field.
func TakenBy(field string) []string {
	return namesOf(func(d *descriptor) bool { return slices.Contains(d.takes, field) })
}

// supported lists all algorithms in a sentence.
func supported() string {
	names := AlgorithmNames()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// AlgorithmNamed returns the algorithm with a name in JSON, or 0 if there is no such algorithm.
func AlgorithmNamed(name string) Algorithm {
	if d := named(name); d != nil {
		return d.number
	}
	return 0
}

func (a Algorithm) String() string { return a.is().name }

// OnlyHolds reports whether only open reservations are counted, by their ttl.
func (a Algorithm) OnlyHolds() bool { return a.is().kept == inHolds }

// Refills reports whether units are replenished continuously, up to a burst.
func (a Algorithm) Refills() bool { return a.is().refills }

// ByHour reports how a limit can be applied to hourly usage. played reports that the limit can be simulated with
// the units of each hour spread evenly over the hour. whole reports that its windows start empty at clock-aligned
// instants, so the sums of hours that fill a window are exact.
func (l *Limit) ByHour() (played, whole bool) {
	form := l.Algorithm.is().hours
	return form != nothingByHour, form == wholeByHour && !l.FirstHit
}

// Capacity returns the largest cost that an untouched bucket admits, in units.
func (l *Limit) Capacity() int64 {
	if l.Algorithm.Refills() {
		return l.Burst
	}
	return l.Limit
}

// taken returns the units that were charged to a bucket and have not been replenished. Unlike used, taken may
// exceed the capacity, after an overrun, under a soft limit, or when an edit lowered a burst.
func (l *Limit) taken(b bucket, m moment) int64 { return l.Capacity() - l.rules.headroom(l, b, m) }

// Lifetime returns the longest time for which a hit counts, µs. In a log, a hit counts up to one precision longer,
// until the end of its block. The result is at most MaxWindow for a bucket that refills, and 0 for a limit that
// has no window or a calendar window.
func (l *Limit) Lifetime() int64 { return l.rules.lifetime(l) }

// MostIn returns the maximum number of units that the limit could admit in a time span, µs. whole means that
// clock-aligned windows of the limit fill the span. The limit's window must be a duration.
func (l *Limit) MostIn(time int64, whole bool) int64 { return l.rules.mostIn(l, time, whole) }

// WithDefaults returns a Spec with the defaults of the fields that are specific to its algorithm.
func WithDefaults(s Spec) Spec {
	if d := named(s.Algorithm); d != nil && d.defaults != nil {
		d.defaults(&s)
	}
	return s
}

// counted implements the rules that algorithms share if their level is the number of units counted against the
// limit.
type counted struct{}

func (counted) headroom(l *Limit, b bucket, _ moment) int64  { return l.Limit - b.level }
func (counted) used(_ *Limit, b bucket, _ moment) int64      { return b.level }
func (counted) countable(_ *Limit, b bucket, _ moment) int64 { return softCap - b.level }
func (counted) sound(_ *Limit, b bucket, _ []int64) bool     { return counts(b.level) }

// bucket is the state of one limit at one instant. Each algorithm defines the meaning of the two integers. An
// untouched bucket has level 0 and aux 0.
type bucket struct{ level, aux int64 }

// moment is the instant at which buckets are considered, with the calendar of their customer, which determines the
// start of some windows. For a sliding log, a moment also contains the integers that are stored after the bucket.
type moment struct {
	at      int64 // µs
	periods *calendar.Periods
	log     []int64
	holds   *Holds // the holds on the counter
}

// moment returns an instant of the target's customer.
func (t *Target) moment(at int64) moment {
	return moment{at: at, periods: &t.Periods}
}

// softCap is the maximum level of a limit that is exceeded, so that no sum of two levels overflows 64 bits. The
// level of a token bucket may use all 64 bits.
const softCap = int64(1)<<62 - 1

// MostAhead is the largest time by which a counter's last charge may be later than the clock, µs. Nodes agree on
// PostgreSQL's time far better than this, so a larger difference means that the clock itself went back.
const MostAhead = int64(1e6)

// Present is used as the instant of a charge to select all units that count now, whenever they were charged.
const Present = int64(math.MaxInt64)

// rules is the arithmetic of an algorithm on buckets. The rules of each algorithm are in a file of their own, with
// the descriptor.
type rules interface {
	// stand returns a bucket stored at the instant since in its state at m.at ≥ since.
	stand(l *Limit, stored bucket, since int64, m moment) bucket
	// bringBack returns a bucket stored at the instant since, which is later than m.at, as it must be stored at
	// m.at. All units that count in the bucket continue to count, in the window of m.at. For a sliding log see
	// logBrought.
	bringBack(l *Limit, stored bucket, since int64, m moment) bucket
	// headroom returns the largest cost that the limit admits, or a negative number if the limit is exceeded.
	headroom(l *Limit, b bucket, m moment) int64
	// charge adds a cost, as far as 64 bits can count. A negative cost removes units that were added at the same
	// instant.
	charge(l *Limit, b bucket, cost int64, m moment) bucket
	// used returns the units that count against the limit.
	used(l *Limit, b bucket, m moment) int64
	// wait returns the time, µs, after which the limit admits a cost that it does not admit now, if nothing else
	// happens, or Never.
	wait(l *Limit, b bucket, cost int64, m moment) int64
	// resetAt returns the first instant at which the whole quota would be available again. The result is now for
	// an untouched bucket and for a closed limit, whose whole quota is 0, and NoReset if that instant never comes.
	resetAt(l *Limit, b bucket, m moment) int64
	// giveBack subtracts a cost from a bucket as of m.at, as far as the cost still counts. The cost was charged at
	// the instant charged ≤ m.at. If charged is Present, the cost is subtracted from all units that count now, the
	// newest first. For a sliding log see logWithout.
	giveBack(l *Limit, b bucket, charged, cost int64, m moment) bucket
	// backdate adds a cost to a bucket as of m.at. The cost is charged at the instant at ≤ m.at, as far as it
	// still counts, even if it does not fit. For a sliding log see backdated.
	backdate(l *Limit, b bucket, at, cost int64, m moment) bucket
	// countsFrom returns the first instant whose charges may still count in a bucket as of m.at.
	countsFrom(l *Limit, b bucket, m moment) int64
	// began returns the start of the running window, and false if no window runs or windows have no start.
	began(l *Limit, b bucket, m moment) (start int64, runs bool)
	// sound reports whether the algorithm may have stored the bucket and the log that follows the bucket.
	sound(l *Limit, b bucket, log []int64) bool
	// countable returns the largest cost that a soft limit can count completely.
	countable(l *Limit, b bucket, m moment) int64
	// See Limit.Lifetime and Limit.MostIn.
	lifetime(l *Limit) int64
	mostIn(l *Limit, time int64, whole bool) int64
}

// BucketLen is the number of integers that a bucket occupies in a counter's state: the limit's identity, the two
// integers of the bucket, and the instant until which the bucket is relevant, see until. A log has a negative
// identity, and its bucket is followed by aux more integers.
const BucketLen = 4

// BucketID returns the identity that distinguishes the limit's bucket from other buckets in a row. If a customer's
// billing periods were changed, a bucket by billing period starts anew with another identity. The new bucket
// counts only units of hours in the new period, even if other units were charged at the instant of the change.
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

// findBucket returns the bucket with an identity in a counter's state, and its log. A missing bucket is returned
// as untouched.
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

// stand returns the limit's bucket in a counter's state of instant since, as of m.at ≥ since, and its log.
func (l *Limit) stand(state []int64, since int64, m moment) (bucket, []int64) {
	b, log := findBucket(state, l.BucketID(m))
	m.log = log
	return l.rules.stand(l, b, since, m), log
}

// wait returns the shortest time in µs after which the limit admits cost if nothing else happens. The result is 0
// if the limit admits cost now, and Never if it never will.
func (l *Limit) wait(b bucket, cost int64, m moment) int64 {
	if cost <= max(0, l.rules.headroom(l, b, m)) {
		return 0
	}
	return l.rules.wait(l, b, cost, m)
}

// AddUpTo returns a sum that stops at the limit of 64 bits.
func AddUpTo(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
