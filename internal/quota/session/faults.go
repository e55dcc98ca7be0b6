package session

// Faults are what tests build into a lane or a worker, to see that it is noticed. Nothing else
// sets them.
type Faults struct {
	CommitAfter  StatementName // a transaction is committed after it too, and so cut in two
	KeepTogether bool          // a lane keeps groups on one counter in one statement
}
