package plans

import (
	"time"

	"quotad/internal/calendar"
)

// Scope is the set of requests that a key may make.
type Scope string

// The scopes. A key with scope read may GET customers, plans and meters. A key with scope support may
// also write overrides.
const (
	ScopeAdmin   Scope = "admin"
	ScopeSupport Scope = "support"
	ScopeBackend Scope = "backend"
	ScopeRead    Scope = "read"
)

// Key is an API key without its secret. Only the SHA-256 of the secret is stored.
type Key struct {
	ID        string
	Name      string
	Scope     Scope
	CreatedAt time.Time
	ExpiresAt *time.Time
	UsedOn    *time.Time // day of the last use, in UTC; nil if the key was never used
}

// The shortest and the longest secret, in bytes. Generated secrets have 46 bytes, but an operator may
// choose the secret of the first admin key.
const (
	minSecret = 16
	MaxSecret = 200
)

// SecretRule is the error text for a secret that ValidSecret rejects.
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

// lastInstant is the last instant that RFC 3339 can represent. No key may expire later.
var lastInstant = time.UnixMicro(calendar.MaxInstant).UTC()

// CheckNewKey trims white space from both ends of the name and returns the errors of a new key, or nil if
// there are no errors.
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
