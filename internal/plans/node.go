package plans

// A Node is a running quotad server as it last reported itself. Instants are µs since the Unix epoch, by
// PostgreSQL's clock.
type Node struct {
	ID, Name, Version string
	State, Reason     string // state and reason that its /readyz reports
	StartedAt, SeenAt int64
	CheckedAt         *int64   // last time at which the node reconciled the books; nil if never
	Disagreeing       []string // checks that failed at CheckedAt
}

// Decided contains numbers of hits and reservations. Dry runs, reads and replays do not count.
type Decided struct{ Admitted, Refused int64 }

// NodeDecided contains the numbers of a node's recent decisions, see Store.DecidedSince.
type NodeDecided struct {
	Node              string // id of the node
	Recent, Hour, Day Decided
}
