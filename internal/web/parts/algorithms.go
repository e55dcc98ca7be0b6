package parts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"quotad/client"
	"quotad/internal/quota/model"
	"quotad/internal/web/words"
)

// AlgorithmWords contains the texts of an algorithm's limits on pages, and the functions that compute when units
// return and when a limit runs out.
type AlgorithmWords struct {
	Says func(l *model.Limit) string // text in the playground; nil if the playground does not compare the algorithm
	rule func(units string, l *client.QuotaLimit, spec *client.Limit) string

	gone   string // when units return that do not return with time; if empty, resets applies
	resets func(c *Card, l *client.QuotaLimit, spec *client.Limit, now time.Time, zone *time.Location)

	pace paceBy
	ends func(p speed, l *client.QuotaLimit, now time.Time) (time.Time, bool) // see speed.ends
}

// algorithms maps each algorithm to its texts.
var algorithms = map[model.Algorithm]AlgorithmWords{
	model.FixedWindow: {
		rule: fixedRule, pace: byWindow, ends: speed.beforeReset,
		Says: func(l *model.Limit) string { return "Counts from zero at each full " + Each(l.Window) + "." },
		resets: func(c *Card, l *client.QuotaLimit, _ *client.Limit, now time.Time, zone *time.Location) {
			c.countdown("Resets in", *l.ResetAt, now, 0)
			c.fact("At", words.When(*l.ResetAt, now, zone))
		},
	},
	model.SlidingWindow: {
		rule: slidingRule, resets: (*Card).sliding, pace: byLastHour, ends: speed.whileSliding,
		Says: func(l *model.Limit) string {
			return "The units of the last " + Each(l.Window) + " fade while this one runs."
		},
	},
	model.SlidingLog: {
		rule: slidingRule, resets: (*Card).sliding, pace: byLastHour, ends: speed.whileSliding,
		Says: func(l *model.Limit) string {
			if l.Precision > 1 {
				return "Counts the last " + Each(l.Window) + ", in blocks of " + lasting(l.Precision) + "."
			}
			return "Counts each hit of the last " + Each(l.Window) + "."
		},
	},
	model.TokenBucket: {
		resets: (*Card).refilling, pace: byLastHour, ends: speed.whileRefilling,
		Says: func(l *model.Limit) string {
			return "Full at first with " + words.Number(l.Burst) + ", refilled all the time."
		},
		rule: func(units string, l *client.QuotaLimit, spec *client.Limit) string {
			return fmt.Sprintf("%s at once, refilled at %s %s", words.Short(l.Used+l.Remaining), units, every(spec.Window, "a"))
		},
	},
	model.Allocation: {
		gone: "when one is given up",
		rule: func(units string, _ *client.QuotaLimit, _ *client.Limit) string { return units + " at any time" },
	},
	model.Concurrency: {
		gone: "when one ends",
		rule: func(units string, _ *client.QuotaLimit, _ *client.Limit) string { return units + " at the same time" },
	},
}

// AlgorithmOf returns the texts of the algorithm with the given JSON name.
func AlgorithmOf(name string) AlgorithmWords { return algorithms[model.AlgorithmNamed(name)] }

// Rule describes a limit in words.
func Rule(l *client.QuotaLimit, spec *client.Limit) string {
	return AlgorithmOf(l.Algorithm).rule(words.Short(l.Limit), l, spec)
}

func fixedRule(units string, _ *client.QuotaLimit, spec *client.Limit) string {
	switch spec.Window {
	case "calendar_day":
		return units + " each day"
	case "calendar_week":
		return units + " each week, from Monday"
	case "calendar_month":
		return units + " each calendar month"
	case "calendar_year":
		return units + " each calendar year"
	case "billing_period":
		return units + " each billing period"
	}
	if spec.Align == "first_hit" {
		return fmt.Sprintf("%s in %s, from the first one on", units, length(spec.Window))
	}
	return units + " " + every(spec.Window, "each clock")
}

func slidingRule(units string, _ *client.QuotaLimit, spec *client.Limit) string {
	return fmt.Sprintf("%s in any %s", units, length(spec.Window))
}

// sliding adds facts about the return of units to a card, for limits in which each unit counts for one window.
func (c *Card) sliding(l *client.QuotaLimit, spec *client.Limit, now time.Time, zone *time.Location) {
	c.fact("Comes back", "as "+words.Plural(2, cmp.Or(c.Unit, "unit"))+" get older than "+aged(spec.Window))
	c.fact("All back", words.When(*l.ResetAt, now, zone))
	c.At, c.Slides = *l.ResetAt, true
}

// refilling adds facts about the refill of a token bucket to a card. The missing units return evenly until the
// reset.
func (c *Card) refilling(l *client.QuotaLimit, spec *client.Limit, now time.Time, zone *time.Location) {
	reset := *l.ResetAt
	window, err := model.ParseDuration(spec.Window)
	if err == nil && l.Limit > 0 {
		left := reset.Sub(now).Microseconds()
		missing := words.MulDiv(left, l.Limit, window) // whole units that return after the next unit
		next := reset.Add(-time.Duration(words.MulDiv(missing, window, l.Limit)) * time.Microsecond)
		if every := window / l.Limit; every >= time.Second.Microseconds() {
			if !next.After(now) {
				next = next.Add(time.Duration(every) * time.Microsecond)
			}
			c.countdown("One more in", next, now, every/1000)
		} else {
			c.fact("Comes back", fmt.Sprintf("%s a second", words.Number(words.MulDiv(l.Limit, time.Second.Microseconds(), window))))
			c.Slides = true
		}
	}
	c.fact("All back", words.When(reset, now, zone))
}

func (c *Card) fact(term, text string) { c.Facts = append(c.Facts, Fact{Term: term, Text: text}) }

func (c *Card) countdown(term string, at, now time.Time, every int64) {
	c.Facts = append(c.Facts, Fact{Term: term, Text: words.Until(at.Sub(now)), At: at.UTC().Format(time.RFC3339Nano), Every: every})
	c.changes(at)
}

// changes records that the card changes by itself at an instant.
func (c *Card) changes(at time.Time) {
	if c.At.IsZero() || at.Before(c.At) {
		c.At = at
	}
}

// every returns a window as a text such as "a day" or "every 15 minutes". one is the word before a single unit,
// such as "a".
func every(window, one string) string {
	n, unit := unitsOf(window)
	switch {
	case n == 1 && one == "a" && unit == "hour":
		return "an hour"
	case n == 1 && one == "each clock" && unit == "day":
		return "each day, by UTC"
	case n == 1:
		return one + " " + unit
	}
	return fmt.Sprintf("every %d %s", n, words.Plural(n, unit))
}

// length returns a window as a text such as "hour" or "15 minutes".
func length(window string) string {
	n, unit := unitsOf(window)
	if n == 1 {
		return unit
	}
	return fmt.Sprintf("%d %s", n, words.Plural(n, unit))
}

// aged returns a window as a text such as "an hour", "a minute" or "15 minutes".
func aged(window string) string {
	switch text := length(window); text {
	case "hour":
		return "an hour"
	case "minute", "second", "day":
		return "a " + text
	default:
		return text
	}
}

// unitsOf splits a plan's duration into number and unit: "15m" becomes 15 and minute. It converts to the largest
// unit in which the number is whole, so "60m" becomes 1 and hour.
func unitsOf(window string) (n int64, unit string) {
	text := strings.TrimLeft(window, "0123456789")
	_, _ = fmt.Sscan(strings.TrimSuffix(window, text), &n)
	for _, up := range []struct {
		from, to string
		of       int64
	}{{"ms", "s", 1000}, {"s", "m", 60}, {"m", "h", 60}, {"h", "d", 24}} {
		if text == up.from && n > 0 && n%up.of == 0 {
			n, text = n/up.of, up.to
		}
	}
	return n, cmp.Or(durationUnits[text], text)
}

var durationUnits = map[string]string{"us": "microsecond", "ms": "millisecond", "s": "second", "m": "minute", "h": "hour", "d": "day"}
