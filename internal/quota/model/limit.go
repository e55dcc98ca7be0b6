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

// MaxNumber is the maximum of every limit, burst and cost (the contract's 10¹⁵−1).
const MaxNumber int64 = 1e15 - 1

// MaxAttributes, MaxAttributeName and MaxAttributeValue bound the number of attributes of a hit, and the bytes of
// their names and values.
const (
	MaxAttributes     = 16
	MaxAttributeName  = 64
	MaxAttributeValue = 200
)

// Mode specifies how a limit treats a hit that does not fit.
type Mode int8

// The modes are hard, soft and shadow. A hard limit refuses the hit. A soft limit admits the hit and reports that
// the limit is exceeded. A shadow limit never refuses, is charged only if it would admit the hit, and reports its
// own verdict.
const (
	Hard Mode = iota
	Soft
	Shadow
)

var modeNames = [...]string{Hard: "hard", Soft: "soft", Shadow: "shadow"}

func (m Mode) String() string { return modeNames[m] }

// Spec is a limit in the form that a plan contains. Empty strings and nil mean the default.
type Spec = client.Spec

// Limit is a compiled Spec, which has been checked and contains the integers that the arithmetic needs. A Limit is
// immutable and shared by all targets of its plan.
type Limit struct {
	Name       string
	Algorithm  Algorithm
	Mode       Mode
	Per        string // the attribute whose values have a bucket each; empty: no attribute
	Limit      int64
	Burst      int64  // of a token bucket: the capacity in units
	Window     int64  // µs; 0 for an allocation, a concurrency limit and a calendar window
	Precision  int64  // of a sliding log: the length of a block, µs
	TTL        int64  // of a concurrency limit: the longest lifetime of a reservation, µs
	Calendar   bool   // the window is a calendar window
	FirstHit   bool   // the limit's windows start with a hit
	WindowText string // the window as written in the plan
	DenyOutage bool   // on_outage: deny

	// ID distinguishes this limit's bucket from other buckets in a counter's row. It is derived from the fields
	// whose change begins a new bucket (name, algorithm, window), so that a change of the limit or the burst keeps
	// the used units.
	ID int64

	facts          // the facts of the algorithm
	rules    rules // the rules of the algorithm
	byPeriod bool  // the window is the billing period

	// A token bucket is reduced by g = gcd(Limit, Window). A unit is scale = Window/g parts, and refill = Limit/g
	// parts are replenished each µs. capacity = Burst·scale.
	scale, refill, capacity int64
	// rates contains earlier values of Limit of a token bucket, up to the present value, which counts since
	// edited. nil and 0 mean that Limit never changed.
	rates  Rates
	edited int64

	notify []int // percentages in ascending order, see Raise; nil: no thresholds

	ends int64 // if the limit is an override: its end, µs; 0: it never ends, or the limit is no override
}

// NoLimit is the Limit of a Spec without a limit.
const NoLimit = math.MinInt64

var limitName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,200}$`)

// Compile checks a limit and prepares it for the arithmetic. Field names in the errors are relative to the limit
// ("window").
func Compile(s Spec) (*Limit, FieldErrors) {
	var bad FieldErrors
	refuse := func(field, format string, args ...any) {
		bad = append(bad, FieldError{field, fmt.Sprintf(format, args...)})
	}
	l := &Limit{Name: s.Name, Limit: s.Limit, WindowText: s.Window, DenyOutage: s.OnOutage == "deny"}
	if !limitName.MatchString(s.Name) || s.Name == "." || s.Name == ".." { // these two names have a meaning in paths
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

// compileWindow reads the window, which is a duration or a calendar window. If the algorithm is unknown and has no
// descriptor, compileWindow only requires a form that some algorithm accepts.
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

// compileOptions reads the optional fields, and refuses fields that the algorithm does not have.
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

// checkBurst refuses a burst that is never replenished.
func checkBurst(s *Spec, refuse refusal) {
	switch {
	case *s.Burst < 0 || *s.Burst > MaxNumber:
		refuse("burst", "must be between 0 and %d", MaxNumber)
	case s.Limit == 0 && *s.Burst > 0:
		refuse("burst", "limit 0 never refills: leave burst out to close the limit, or set a limit above 0")
	}
}

// identity returns a 63-bit FNV-1a hash. Names contain no NUL, so the hashed parts cannot be confused, and a plan
// refuses two limits with the same identity. A field with its default value is not hashed, so that limits that
// were stored before the field existed keep their identities. The identity of a log is negative, which indicates
// that its bucket is longer than other buckets.
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
