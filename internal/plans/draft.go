package plans

import "time"

// Draft is a plan that an admin is writing. It may lack what a plan needs: it is stored as it was
// typed, and counts for nobody.
type Draft struct {
	Key      string
	Document []byte // JSON, an object with members of a plan
	BasedOn  int    // the plan's version that the draft was begun on; 0: the plan did not exist
	Revision int64  // one more with each write
	SavedAt  time.Time
}

// ETag is the draft's entity tag, unquoted.
func (d *Draft) ETag() string { return etag(d.Revision) }
