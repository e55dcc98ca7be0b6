package plans

// What the tests outside of the package look at.
const (
	writersAtOnce    = maxWriters
	keptChanges      = changesKept
	lockChangeNumber = takeChangeNumber
	adminKeyQuery    = hasAdminKey
)

// busyWriters is how many writes of a store hold a connection.
func busyWriters(s *Store) int { return len(s.writers) }
