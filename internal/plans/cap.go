package plans

// CapPeriod is a billing period [Start, End), µs by the customer's clock, and what a customer's caps are
// in it.
type CapPeriod struct {
	Start, End int64
	// Begun: another period ended where it starts. So whatever the customer's clock shows, no hit is judged
	// before its start. Where billing begins again, one may be: on a test clock that stands still, hits of the
	// instant at which it began again are free.
	Begun bool
	Caps  map[string]Cap // by the meter's key
}

// Cap is what a meter may cost in one billing period.
type Cap struct {
	AmountMinor int64
	Units       *int64 // how many may be used; nil: no number of units costs more
}
