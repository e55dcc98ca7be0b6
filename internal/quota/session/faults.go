package session

// Faults are defects that tests build into a lane or a worker to verify that the defects are noticed. Nothing else
// sets them.
type Faults struct {
	CommitAfter  StatementName // a transaction is also committed after this statement, and is thus split in two
	KeepTogether bool          // a lane keeps groups on one counter in one statement
}
