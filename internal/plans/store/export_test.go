package store

import "quotad/internal/plans"

// What the tests outside of the package look at.
const (
	WritersAtOnce    = maxWriters
	LockChangeNumber = takeChangeNumber
	AdminKeyQuery    = hasAdminKey
	FindCustomersSQL = findCustomers
)

// QueryOf and WordsOf are what a search is, and what a name is found by.
var (
	QueryOf = queryOf
	WordsOf = wordsOf
)

// BusyWriters is how many writes of a store hold a connection.
func BusyWriters(s *Store) int { return len(s.writers) }

// AuditQuery is the statement of a list's first page.
func AuditQuery(f plans.AuditFilter, rows int) (string, []any) {
	return auditQuery(f, auditAt{}, rows)
}
