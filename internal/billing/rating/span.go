package rating

// Span is a full billing period [Start, End) and the part of it [From, To) that is billed, in
// µs since the Unix epoch: Start < End, Start ≤ From ≤ To ≤ End. The zero Span is a whole
// period.
//
// The amounts of parts that follow each other add up to that of the full period, since each
// is a difference of two points: P(To) − P(From).
type Span struct{ Start, End, From, To int64 }

// Money is the part of an amount of the full period, in minor units, that belongs to the span:
// P(To) − P(From), where P(t) = minor·(t−Start)/(End−Start), rounded half away from zero. minor
// is 0 … MaxMinor. Base prices, minimums and maximums are cut by it. What of a base is given
// back is the Money of the unused span, with its sign changed.
func (s Span) Money(minor int64) int64 {
	if s.whole() || minor == 0 {
		return minor
	}
	return mulDivRounded(minor, s.until(s.To), s.length()) - mulDivRounded(minor, s.until(s.From), s.length())
}

// Units is the part of a number of units of the full period that belongs to the span, as Money
// but rounded down at both points. units is 0 or more. Included units are cut by it.
func (s Span) Units(units int64) int64 {
	if s.whole() || units == 0 {
		return units
	}
	to, _ := mulDiv(units, s.until(s.To), s.length())
	from, _ := mulDiv(units, s.until(s.From), s.length())
	return to - from
}

func (s Span) whole() bool { return s.From == s.Start && s.To == s.End }

func (s Span) length() int64 { return s.End - s.Start }

// until is how much of the full period has passed at t, which is taken into the period.
func (s Span) until(t int64) int64 { return min(max(t, s.Start), s.End) - s.Start }
