package document

import (
	"strconv"
	"strings"
	"time"

	"quotad/internal/billing"
	"quotad/internal/billing/rating"
	"quotad/internal/plans"
)

const (
	dayLayout  = "2 Jan 2006"
	timeLayout = "2 Jan 2006, 15:04"
)

// amounts formats the amounts of a currency for people.
type amounts struct {
	Currency string
	exponent int // the number of digits of the minor unit
}

func amountsIn(currency string) amounts {
	exponent, _ := plans.Exponent(currency) // no invoice has another currency
	return amounts{currency, exponent}
}

// Money formats minor units of a currency as in all documents: €1,234.56.
func Money(minor int64, currency string) string { return amountsIn(currency).money(minor) }

// money formats minor units: €1,234.56.
func (a amounts) money(minor int64) string {
	return rating.Money(rating.Format(minor, a.exponent), a.Currency)
}

// exact formats a decimal in major units like money. The result has at least the currency's digits after the
// point, no further trailing zeros, and no leading zeros.
func (a amounts) exact(decimal string) string {
	whole, fraction, _ := strings.Cut(decimal, ".")
	for len(whole) > 1 && whole[0] == '0' {
		whole = whole[1:]
	}
	fraction = strings.TrimRight(fraction, "0")
	fraction += strings.Repeat("0", max(0, a.exponent-len(fraction)))
	if fraction != "" {
		whole += "." + fraction
	}
	return rating.Money(whole, a.Currency)
}

func count(units int64) string { return rating.Grouped(strconv.FormatInt(units, 10)) }

// dates formats instants, in µs, in one timezone.
type dates struct{ zone *time.Location }

func (d dates) local(at int64) time.Time { return time.UnixMicro(at).In(d.zone) }

func (d dates) day(at int64) string { return d.local(at).Format(dayLayout) }

// span formats the time [from, to). If both ends are midnight, the result names the first and the last day,
// both inclusive; otherwise it names the minutes. If from is not before to, the time is an instant.
func (d dates) span(from, to int64) string {
	if from >= to {
		return d.day(from)
	}
	start, end := d.local(from), d.local(to)
	if !midnight(start) || !midnight(end) {
		return start.Format(timeLayout) + " – " + end.Format(timeLayout)
	}
	last := end.AddDate(0, 0, -1)
	switch {
	case start.Equal(last):
		return last.Format(dayLayout)
	case start.Year() == last.Year():
		return start.Format("2 Jan") + " – " + last.Format(dayLayout)
	}
	return start.Format(dayLayout) + " – " + last.Format(dayLayout)
}

func midnight(t time.Time) bool {
	hour, minute, second := t.Clock()
	return hour == 0 && minute == 0 && second == 0 && t.Nanosecond() == 0
}

// timeUnits contains the units for a part of a period, the longest first, with their lengths in µs and their
// maximum numbers of decimal digits. Seconds have as many digits as an instant.
var timeUnits = []struct {
	name   string
	length int64
	digits int
}{{"hours", 3600e6, 2}, {"minutes", 60e6, 2}, {"seconds", 1e6, 6}}

// times formats a part as a factor: " × 444.5 of 720 hours". The result is empty for a whole period.
func times(p *billing.Part, stepwise bool) string {
	if p == nil {
		return ""
	}
	return " × " + partText(p, stepwise)
}

// partText formats a part exactly: "444.5 of 720 hours". If stepwise is true, it adds the start of a part
// that begins after the whole: "444.5 of 720 hours, after the first 275.5". The start matters because an
// amount is rounded at the part's start and at its end.
func partText(p *billing.Part, stepwise bool) string {
	covered, whole, before := p.To-p.From, p.OfTo-p.OfFrom, p.From-p.OfFrom
	if !stepwise {
		before = 0
	}
	for _, unit := range timeUnits {
		step := unit.length
		for range unit.digits {
			step /= 10
		}
		if covered%step != 0 || whole%step != 0 || before%step != 0 {
			continue
		}
		write := func(length int64) string { return rating.Short(rating.Format(length/step, unit.digits)) }
		text := write(covered) + " of " + write(whole) + " " + unit.name
		if before > 0 {
			text += ", after the first " + write(before)
		}
		return text
	}
	return ""
}
