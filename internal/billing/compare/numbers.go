package compare

// Range is a number between two known bounds.
type Range struct{ Least, Most int64 }

// order puts the smaller number first.
func (r *Range) order() { r.Least, r.Most = min(r.Least, r.Most), max(r.Least, r.Most) }
