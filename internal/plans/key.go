package plans

import (
	"time"

	"quotad/internal/calendar"
)

// Scope says what a key may do.
type Scope string

// The scopes. Read may do every GET of a customer, plan or meter. Support may do what read may,
// and write overrides.
const (
	ScopeAdmin   Scope = "admin"
	ScopeSupport Scope = "support"
	ScopeBackend Scope = "backend"
	ScopeRead    Scope = "read"
)

// Key is an API key without its secret, of which only the SHA-256 is kept.
type Key struct {
	ID        string
	Name      string
	Scope     Scope
	CreatedAt time.Time
	ExpiresAt *time.Time
	UsedOn    *time.Time // the day of its last use, in UTC; nil: it was not used
}

// The length of a secret, in bytes. Made ones have 46; an operator may choose his own
// for the first admin key.
const (
	minSecret = 16
	MaxSecret = 200
)

// SecretRule is what is said of a secret that ValidSecret refuses.
const SecretRule = "must be 16 to 200 bytes of printable ASCII without spaces"

// ValidSecret reports whether an operator may choose s as the secret of a key.
func ValidSecret(s string) bool {
	if len(s) < minSecret || len(s) > MaxSecret {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// lastInstant is the last instant that RFC 3339 can write. No key may expire later.
var lastInstant = time.UnixMicro(calendar.MaxInstant).UTC()

// CheckNewKey takes the white space off both ends of the name. It is what is wrong with a key that is to be
// made, nil if nothing is.
func CheckNewKey(name *string, scope Scope, expiresAt *time.Time) error {
	var bad faults
	bad.checkKey(name, scope)
	if expiresAt != nil && expiresAt.After(lastInstant) {
		bad.add("expires_at", "must be before the year 10000 in UTC: leave it out for a key that does not expire")
	}
	return bad.err()
}

// CheckChosenKey is CheckNewKey for a key whose secret an operator chose.
func CheckChosenKey(secret string, name *string, scope Scope) error {
	var bad faults
	bad.checkKey(name, scope)
	if !ValidSecret(secret) {
		bad.add("secret", SecretRule)
	}
	return bad.err()
}

func (f *faults) checkKey(name *string, scope Scope) {
	f.name("name", name, true)
	f.must("scope", string(scope), "admin, support, backend or read",
		scope == ScopeAdmin || scope == ScopeSupport || scope == ScopeBackend || scope == ScopeRead)
}
