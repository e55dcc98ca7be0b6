package plans

import "time"

// Draft is a plan that an admin is still writing. A draft is stored as it was typed, may lack members
// that a plan requires, and applies to no customer.
type Draft struct {
	Key      string
	Document []byte // JSON, an object with members of a plan
	BasedOn  int    // plan version from which the draft was begun; 0 if the plan did not exist
	Revision int64  // increases by one with each write
	SavedAt  time.Time
}

// ETag returns the draft's entity tag, unquoted.
func (d *Draft) ETag() string { return etag(d.Revision) }
