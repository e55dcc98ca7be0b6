package store

// What the tests outside of the package look at.
const (
	WritersAtOnce    = maxWriters
	KeptChanges      = changesKept
	LockChangeNumber = takeChangeNumber
	AdminKeyQuery    = hasAdminKey
)

// BusyWriters is how many writes of a store hold a connection.
func BusyWriters(s *Store) int { return len(s.writers) }
