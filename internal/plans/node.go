package plans

// A Node is a quotad that serves, as it last told of itself. Instants are µs since the Unix epoch,
// by PostgreSQL's clock.
type Node struct {
	ID, Name, Version string
	State, Reason     string // what its /readyz answers
	StartedAt, SeenAt int64
	CheckedAt         *int64   // when it was last asked whether the books agree; nil: never
	Disagreeing       []string // the checks that found something then
}

// Decided are numbers of hits and reservations. Looks and replays are none.
type Decided struct{ Admitted, Refused int64 }

// NodeDecided is what a node decided lately, see Store.DecidedSince.
type NodeDecided struct {
	Node              string // its id
	Recent, Hour, Day Decided
}
