package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strings"

	"quotad/client"
)

// MaxNumber bounds every limit, burst and cost (the contract's 10¹⁵−1).
const MaxNumber int64 = 1e15 - 1

// MaxAttributes, MaxAttributeName and MaxAttributeValue bound the attributes of a hit: how
// many, and their bytes.
const (
	MaxAttributes     = 16
	MaxAttributeName  = 64
	MaxAttributeValue = 200
)

// Mode is what a limit does with a hit that does not fit it.
type Mode int8

// The modes: a hard limit refuses; a soft one admits past itself and says so; a shadow
// never refuses, is charged only with what it would admit, and says what it would have done.
const (
	Hard Mode = iota
	Soft
	Shadow
)

var modeNames = [...]string{Hard: "hard", Soft: "soft", Shadow: "shadow"}

func (m Mode) String() string { return modeNames[m] }

// Spec is a limit as a plan writes it. Empty strings and nil mean the default.
type Spec = client.Spec

// Limit is a compiled Spec: checked, with the integers that the arithmetic needs.
// It is immutable and shared by all targets of its plan.
type Limit struct {
	Name       string
	Algorithm  Algorithm
	Mode       Mode
	Per        string // the attribute that each value of has a bucket of its own, or none
	Limit      int64
	Burst      int64  // token bucket: capacity in units
	Window     int64  // µs; 0 for an allocation, a concurrency and a calendar's window
	Precision  int64  // sliding log: length of a block, µs
	TTL        int64  // concurrency: the longest life of a reservation, µs
	Calendar   bool   // the window is the calendar's
	FirstHit   bool   // its windows start with a hit
	WindowText string // as the plan wrote it
	DenyOutage bool   // on_outage: deny

	// ID tells this limit's bucket from others in a counter's row. It is made of all
	// whose change begins a new bucket (name, algorithm, window), so that a changed limit
	// or burst keeps what was used.
	ID int64

	facts          // the algorithm's
	rules    rules // likewise
	byPeriod bool  // its window is the billing period

	// Token bucket, reduced by g = gcd(Limit, Window): a unit is scale = Window/g
	// parts and refill = Limit/g parts come back each µs. capacity = Burst·scale.
	scale, refill, capacity int64
	// Token bucket: what Limit was before, up to itself since edited; nil and 0: always the same.
	rates  Rates
	edited int64

	notify []int // percents, ascending, see Raise; nil: none

	ends int64 // when the override ends that the limit is, µs; 0: never, or it is none
}

// NoLimit is the Limit of a Spec that has none.
const NoLimit = math.MinInt64

var limitName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,200}$`)

// Compile checks a limit and prepares it for the arithmetic. Field names in the errors
// are relative to the limit ("window").
func Compile(s Spec) (*Limit, FieldErrors) {
	var bad FieldErrors
	refuse := func(field, format string, args ...any) {
		bad = append(bad, FieldError{field, fmt.Sprintf(format, args...)})
	}
	l := &Limit{Name: s.Name, Limit: s.Limit, WindowText: s.Window, DenyOutage: s.OnOutage == "deny"}
	if !limitName.MatchString(s.Name) || s.Name == "." || s.Name == ".." { // these two stand for places in paths
		refuse("name", `must be 1 to 200 letters, digits or . _ : -, and not "." or ".."`)
	}
	if s.Limit == NoLimit {
		refuse("limit", "is required: a whole number from 0 (closed) to %d", MaxNumber)
	} else if s.Limit < 0 || s.Limit > MaxNumber {
		refuse("limit", "must be between 0 (closed) and %d", MaxNumber)
	}
	d := named(s.Algorithm)
	switch {
	case d != nil:
		l.Algorithm, l.facts = d.number, d.facts
	case s.Algorithm == "":
		refuse("algorithm", "is required: %s", supported())
	default:
		refuse("algorithm", "%q is not supported: use %s", s.Algorithm, supported())
	}
	l.compileWindow(d, &s, refuse)
	if d != nil {
		l.rules = d.compile(l, &s, refuse)
	}
	l.compileOptions(d, &s, refuse)
	l.compileNotify(d, &s, refuse)
	if len(bad) > 0 {
		return nil, bad
	}
	if d.reduce != nil {
		if err := d.reduce(l, &s); err != nil {
			return nil, FieldErrors{*err}
		}
	}
	if err := l.fillsTooFast(); err != nil {
		return nil, FieldErrors{*err}
	}
	l.ID = l.identity(s.Align)
	return l, nil
}

// compileWindow reads the window, a duration or the calendar's. Of an algorithm that is not known,
// which has no descriptor, it asks only for a form that some algorithm has.
func (l *Limit) compileWindow(d *descriptor, s *Spec, refuse refusal) {
	_, isNamed := calendarWindows[s.Window]
	var form windowForm
	if d != nil {
		form = d.window
	}
	switch {
	case form == noWindow:
		if s.Window != "" {
			refuse("window", "%s has none: leave it out", l.Algorithm)
		}
	case s.Window == "":
		if d != nil || s.Algorithm == "" {
			refuse("window", `is required: a duration such as "1h"`)
		}
	case isNamed:
		if l.Calendar = form == anyWindow; form == durationWindow {
			calendars := namesOf(func(d *descriptor) bool { return d.window == anyWindow })
			refuse("window", "%q belongs to %s only: use a duration such as \"1h\"", s.Window, strings.Join(calendars, " and "))
		}
	default:
		var err error
		if l.Window, err = ParseDuration(s.Window); err != nil {
			refuse("window", "%s", badWindow(s.Window, form == anyWindow, err))
		}
	}
}

// compileOptions reads the optional fields, and refuses those that the algorithm has not.
func (l *Limit) compileOptions(d *descriptor, s *Spec, refuse refusal) {
	takes := func(field string) bool { return d != nil && slices.Contains(d.takes, field) }
	foreign := func(field string, there bool) {
		if there && !takes(field) {
			refuse(field, "belongs to %s only: leave it out", strings.Join(TakenBy(field), " and "))
		}
	}
	foreign("ttl", s.TTL != "")
	foreign("burst", s.Burst != nil)
	if s.Burst != nil && takes("burst") {
		checkBurst(s, refuse)
	}
	if s.Align != "" && (!takes("align") || s.Align != "clock" && s.Align != "first_hit") {
		refuse("align", `only %s has it: "clock" or "first_hit"`, strings.Join(TakenBy("align"), " and "))
	}
	foreign("precision", s.Precision != "")
	if l.Per = s.Per; s.Per != "" && (!limitName.MatchString(s.Per) || len(s.Per) > MaxAttributeName) {
		refuse("per", "must be the name of an attribute: 1 to %d letters, digits or . _ : -", MaxAttributeName)
	}
	if mode := slices.Index(modeNames[:], s.Mode); mode >= 0 {
		l.Mode = Mode(mode)
	} else if s.Mode != "" {
		refuse("mode", `must be "hard", "soft" or "shadow"`)
	}
	if s.OnOutage != "" && s.OnOutage != "allow" && s.OnOutage != "deny" {
		refuse("on_outage", `must be "allow" or "deny"`)
	}
}

// checkBurst refuses a burst that never comes back.
func checkBurst(s *Spec, refuse refusal) {
	switch {
	case *s.Burst < 0 || *s.Burst > MaxNumber:
		refuse("burst", "must be between 0 and %d", MaxNumber)
	case s.Limit == 0 && *s.Burst > 0:
		refuse("burst", "limit 0 never refills: leave burst out to close the limit, or set a limit above 0")
	}
}

// identity is a 63-bit FNV-1a hash: names are checked to hold no NUL, so the parts
// cannot run into each other, and a plan refuses two limits of one identity. What has its
// default adds nothing, so that limits that were stored before it existed keep theirs.
// That of a log is below 0, which tells that its bucket is longer than others.
func (l *Limit) identity(align string) int64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d\x00%d", l.Name, l.Algorithm, l.Window)
	if align == "first_hit" {
		fmt.Fprintf(h, "\x00align=%s", align)
	}
	if l.Calendar {
		fmt.Fprintf(h, "\x00window=%s", l.WindowText)
	}
	if l.Per != "" {
		fmt.Fprintf(h, "\x00per=%s", l.Per)
	}
	if l.kept == inLog {
		fmt.Fprintf(h, "\x00precision=%d", l.Precision)
		return -1 - int64(h.Sum64()>>1)
	}
	return int64(h.Sum64() >> 1)
}
