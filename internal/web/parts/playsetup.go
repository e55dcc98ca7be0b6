package parts

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotad/internal/calendar"
	"quotad/internal/quota/model"
	"quotad/internal/quota/play"
	"quotad/internal/web/words"
)

// Setup is the input of a play, read from the playground's address.
type Setup struct {
	Fields    map[string]string // the typed values
	Wrong     map[string]string
	Algorithm string
	Traffic   play.Traffic
	Limits    []*model.Limit // one for each algorithm, or nil for an invalid setup
}

// playDefaults are the values of fields that the address omits.
var playDefaults = map[string]string{
	"limit": "100", "window": "1m", "capacity": "", "algorithm": "sliding_window",
	"pattern": play.Edge, "windows": "4", "steady": "24", "burst": "88", "cost": "1", "hits": "",
}

// maxTyped bounds the size of a field's typed value, in bytes.
const maxTyped = 8 << 10

// ReadSetup reads a setup from an address. It records errors by field.
func ReadSetup(asked url.Values) *Setup {
	s := &Setup{Fields: map[string]string{}, Wrong: map[string]string{}}
	for name, value := range playDefaults {
		if asked.Has(name) {
			value = strings.TrimSpace(asked.Get(name))
			value = strings.ToValidUTF8(value[:min(len(value), maxTyped)], "")
		}
		s.Fields[name] = value
	}
	s.Algorithm = s.Fields["algorithm"]
	if !slices.Contains(play.Algorithms, s.Algorithm) {
		s.Wrong["algorithm"] = "Choose one of the algorithms in the list."
	}
	s.Traffic = play.Traffic{
		Pattern: s.Fields["pattern"], Windows: s.number("windows", 1, play.MaxWindows), Steady: s.number("steady", 0, play.MaxHits),
		Burst: s.number("burst", 0, play.MaxHits), Cost: s.number("cost", 1, model.MaxNumber),
	}
	window, err := model.ParseDuration(s.Fields["window"])
	if err != nil {
		s.Wrong["window"] = "Write a length such as 30s, 5m, 1h or 1d, up to 3660d."
		window = 60e6
	}
	s.Traffic.Window = window
	s.readHits()
	for _, e := range s.Traffic.Check() {
		name, _, _ := strings.Cut(e.Field, "[")
		s.add(name, "The play "+e.Detail+".")
	}
	if len(s.Wrong) == 0 {
		if _, err := s.Traffic.Hits(); errors.Is(err, play.ErrTooManyHits) {
			s.add("steady", "This is more than 10,000 hits. Ask for fewer, or for fewer windows.")
		}
	}
	s.readLimit(window)
	return s
}

func (s *Setup) add(field, text string) {
	if s.Wrong[field] == "" {
		s.Wrong[field] = text
	}
}

// number parses a field as an integer in [least, most].
func (s *Setup) number(field string, least, most int64) int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(s.Fields[field], ",", ""), 10, 64)
	if err != nil || n < least || n > most {
		text := fmt.Sprintf("Write a whole number from %s to %s.", words.Number(least), words.Number(most))
		if most == model.MaxNumber {
			text = fmt.Sprintf("Write a whole number from %d on, of at most %d digits.", least, len(strconv.FormatInt(most, 10)))
		}
		s.add(field, text)
		return least
	}
	return n
}

// readLimit compiles the limit for each algorithm.
func (s *Setup) readLimit(window int64) {
	limit := s.number("limit", 0, model.MaxNumber)
	var burst *int64
	if s.Fields["capacity"] != "" {
		n := s.number("capacity", 0, model.MaxNumber)
		burst = &n
	}
	for _, spec := range play.Variants(limit, window, burst) {
		spec.Name = "requests" // the name in the text of a refusal
		l, bad := model.Compile(spec)
		for _, e := range bad {
			field := map[string]string{"burst": "capacity"}[e.Field]
			if field == "" {
				field = "limit"
			}
			s.add(field, "By the "+strings.ReplaceAll(spec.Algorithm, "_", " ")+": "+e.Detail+".")
		}
		s.Limits = append(s.Limits, l)
	}
}

// readHits parses the list of hits. Each hit is a number of seconds since the start, followed by x and the cost
// unless the cost is 1. A list with hits after the play's end makes the play longer.
func (s *Setup) readHits() {
	if s.Traffic.Pattern != play.Own {
		return
	}
	last := int64(0)
	for word := range strings.FieldsFuncSeq(s.Fields["hits"],
		func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\r' || r == '\t' || r == ';' }) {
		when, costs, priced := strings.Cut(word, "x")
		at, ok := readSeconds(when)
		cost := int64(1)
		if priced {
			var err error
			cost, err = strconv.ParseInt(costs, 10, 64)
			ok = ok && err == nil && cost > 0 && cost <= model.MaxNumber
		}
		if !ok || len(s.Traffic.List) == play.MaxHits {
			s.add("hits", fmt.Sprintf("%.20q is no hit: write seconds since the start, such as 0 0.5 1.25, and 3x10 for ten units after three seconds.", word))
			return
		}
		s.Traffic.List = append(s.Traffic.List, play.Hit{At: at, Cost: cost})
		last = max(last, at)
	}
	if need := last/s.Traffic.Window + 1; need > s.Traffic.Windows {
		if need > play.MaxWindows {
			s.add("hits", fmt.Sprintf("The last hit comes after more than %d windows. Choose a longer window.", play.MaxWindows))
			return
		}
		s.Traffic.Windows = need
		s.Fields["windows"] = strconv.FormatInt(need, 10)
	}
}

// readSeconds parses a decimal number of seconds with at most six digits after the point, and returns µs.
func readSeconds(text string) (us int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(whole) > 9 || len(fraction) > 6 || whole == "" {
		return 0, false
	}
	digits := whole + fraction + strings.Repeat("0", 6-len(fraction))
	for _, r := range digits {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	us, err := strconv.ParseInt(digits, 10, 64)
	return us, err == nil
}

// PlayInterval is the billing interval of a play's customer. No limit of the playground depends on it.
var PlayInterval = calendar.Interval{Unit: calendar.Months, Count: 1}

// Patterns returns the traffic patterns, with the chosen pattern marked.
func (s *Setup) Patterns() (all []Choice) {
	for _, p := range patternWords {
		p.On = p.Value == s.Traffic.Pattern
		all = append(all, p)
	}
	return all
}

var patternWords = []Choice{
	{Value: play.Steady, Text: "Steady", Says: "evenly spread"},
	{Value: play.Bursts, Text: "Bursts", Says: "all at once, again and again"},
	{Value: play.Edge, Text: "At the window’s edge", Says: "just before and just after it starts again"},
	{Value: play.Own, Text: "Your own", Says: "a list of hits, or the Hit button"},
}

// A Choice is one of several options, with an address if the option is a link.
type Choice struct {
	Value, Text, Says, URL string
	On                     bool
}

// OneMoreHit returns the address with one additional hit. In browsers without script, the button requests this
// address.
func OneMoreHit(asked url.Values) url.Values {
	asked.Del("hit")
	s := ReadSetup(asked)
	at := int64(0)
	if n := len(s.Traffic.List); n > 0 {
		at = s.Traffic.List[n-1].At + max(1, s.Traffic.Window/10)
	}
	asked.Set("pattern", play.Own)
	asked.Set("hits", strings.TrimSpace(asked.Get("hits")+" "+seconds(at)))
	return asked
}

// seconds formats an instant of a play as in a list of hits.
func seconds(us int64) string {
	whole, rest := us/1e6, us%1e6
	if rest == 0 {
		return strconv.FormatInt(whole, 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%06d", whole, rest), "0")
}
