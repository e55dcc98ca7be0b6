package plans

// CapPeriod is a billing period [Start, End), µs by the customer's clock, with the caps of the customer
// in that period.
type CapPeriod struct {
	Start, End int64
	// Begun is true if Start is also the end of an earlier period. In that case no hit is judged before
	// Start, whatever the customer's clock shows. If billing resumes at Start instead, a hit may be judged
	// before Start: on a stopped test clock, hits at the instant of the resumption are free.
	Begun bool
	Caps  map[string]Cap // keyed by meter key
}

// Cap is the greatest amount that a meter may cost in one billing period.
type Cap struct {
	AmountMinor int64
	Units       *int64 // the most units that may be used; nil if no number of units costs more than the amount
}
