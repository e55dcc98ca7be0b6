package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
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
type Spec struct {
	Name      string `json:"name" minLength:"1" maxLength:"200" pattern:"^[A-Za-z0-9._:-]+$"`
	Algorithm string `json:"algorithm" enum:"fixed_window,sliding_window,sliding_log,token_bucket,allocation,concurrency" doc:"When a hit of cost c is admitted:\n- fixed_window: used + c ≤ limit.\n- sliding_window: units of this window + faded units of the last window + c ≤ limit. The last window's units fade by the part of this window that has passed.\n- sliding_log: units younger than the window + c ≤ limit.\n- token_bucket: c tokens are there. There are burst tokens at first, refilled continuously at limit tokens a window. So burst and nearly limit more may be let in within one window.\n- allocation: used + c ≤ limit. No units come back by themselves.\n- concurrency: units in flight + c ≤ limit. The limit judges reservations only, and counts open ones."`
	Limit     int64  `json:"limit" minimum:"0" maximum:"999999999999999" doc:"Units in a window. Of an allocation, units in all; of a concurrency, units in flight. 0 is closed."`
	Window    string `json:"window,omitempty" doc:"The length of the window:\n- A duration: a whole number and one of us ms s m h d.\n- Of a fixed_window also calendar_day, calendar_week, calendar_month or calendar_year, in the customer's timezone.\n- Of a fixed_window also billing_period.\n- An allocation and a concurrency have no window."`
	Burst     *int64 `json:"burst,omitempty" minimum:"0" maximum:"999999999999999" doc:"A token bucket's capacity. When left out, limit."`
	Align     string `json:"align,omitempty" enum:"clock,first_hit" doc:"When windows start, for a fixed_window whose window is a duration:\n- clock (default): at multiples of the duration since the Unix epoch.\n- first_hit: with the first hit that is admitted after the last window ended."`
	Precision string `json:"precision,omitempty" doc:"Of a sliding_log: the length of the blocks that are counted, a duration.\n- When left out: 1us, which is exact.\n- A limit above 1000 needs a precision with at most 1000 blocks in the window."`
	Per       string `json:"per,omitempty" maxLength:"64" pattern:"^[A-Za-z0-9._:-]+$" doc:"The name of an attribute of hits.\n- Each value of the attribute has a bucket of its own.\n- A hit without the attribute uses the bucket of the empty value."`
	TTL       string `json:"ttl,omitempty" doc:"Of a concurrency: the longest that a reservation may be open.\n- A duration from 1ms to 24h.\n- A concurrency needs a ttl.\n- A longer ttl_ms is cut to the ttl."`
	Mode      string `json:"mode" required:"false" enum:"hard,soft,shadow" default:"hard" doc:"What the limit does with hits that do not fit:\n- hard: refuses them.\n- soft: admits them, and says exceeded.\n- shadow: never refuses. A shadow is charged only with what it would admit. It says exceeded where it would have refused."`
	OnOutage  string `json:"on_outage" required:"false" enum:"allow,deny" default:"allow" doc:"What happens to hits while the database is out of reach."`
}

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
	// that starts a bucket anew when it changes (name, algorithm, window), so that a
	// changed limit or burst keeps what was used.
	ID int64

	rules    rules // the algorithm's
	byPeriod bool  // its window is the billing period

	// Token bucket, reduced by g = gcd(Limit, Window): a unit is scale = Window/g
	// parts and refill = Limit/g parts come back each µs. capacity = Burst·scale.
	scale, refill, capacity int64
	// Token bucket: what Limit was before, up to itself since edited; nil and 0: always the same.
	rates  Rates
	edited int64

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
	if !limitName.MatchString(s.Name) {
		refuse("name", "must be 1 to 200 letters, digits or . _ : -")
	}
	if s.Limit == NoLimit {
		refuse("limit", "is required: a whole number from 0 (closed) to %d", MaxNumber)
	} else if s.Limit < 0 || s.Limit > MaxNumber {
		refuse("limit", "must be between 0 (closed) and %d", MaxNumber)
	}
	l.Algorithm = AlgorithmNamed(s.Algorithm)
	is := l.Algorithm.is()
	if s.Algorithm == "" {
		refuse("algorithm", "is required: %s", supported())
	} else if l.Algorithm == 0 {
		refuse("algorithm", "%q is not supported: use %s", s.Algorithm, supported())
	}
	l.compileWindow(&s, refuse)
	if is.compile != nil {
		l.rules = is.compile(l, &s, refuse)
	}
	l.compileOptions(&s, refuse)
	if len(bad) > 0 {
		return nil, bad
	}
	if is.reduce != nil {
		if err := is.reduce(l, &s); err != nil {
			return nil, FieldErrors{*err}
		}
	}
	l.ID = l.identity(s.Align)
	return l, nil
}

// compileWindow reads the window, a duration or the calendar's. Of an algorithm that is not known
// it asks only for a form that some algorithm has.
func (l *Limit) compileWindow(s *Spec, refuse refusal) {
	_, isNamed := calendarWindows[s.Window]
	switch form := l.Algorithm.is().window; {
	case l.Algorithm != 0 && form == noWindow:
		if s.Window != "" {
			refuse("window", "%s has none: leave it out", l.Algorithm)
		}
	case s.Window == "":
		if l.Algorithm != 0 || s.Algorithm == "" {
			refuse("window", `is required: a duration such as "1h"`)
		}
	case isNamed:
		if l.Calendar = form == anyWindow; form == durationWindow {
			refuse("window", "%q belongs to fixed_window only: use a duration such as \"1h\"", s.Window)
		}
	default:
		var err error
		if l.Window, err = ParseDuration(s.Window); err != nil {
			refuse("window", "%s", badWindow(s.Window, form == anyWindow, err))
		}
	}
}

// compileOptions reads the optional fields, and refuses those that the algorithm has not.
func (l *Limit) compileOptions(s *Spec, refuse refusal) {
	own := l.Algorithm.Own()
	foreign := func(field string, there bool) {
		if there && own != field {
			refuse(field, "belongs to %s only: leave it out", OwnerOf(field))
		}
	}
	foreign("ttl", s.TTL != "")
	foreign("burst", s.Burst != nil)
	if s.Burst != nil && own == "burst" {
		checkBurst(s, refuse)
	}
	if s.Align != "" && (own != "align" || s.Align != "clock" && s.Align != "first_hit") {
		refuse("align", `only %s has it: "clock" or "first_hit"`, OwnerOf("align"))
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
	if l.Algorithm.is().log {
		fmt.Fprintf(h, "\x00precision=%d", l.Precision)
		return -1 - int64(h.Sum64()>>1)
	}
	return int64(h.Sum64() >> 1)
}
