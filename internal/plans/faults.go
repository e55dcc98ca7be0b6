package plans

import (
	"fmt"

	"quotad/internal/quota/model"
)

// faults collects all errors of an input, so that a caller receives them together.
type faults struct{ list model.FieldErrors }

func (f *faults) add(field, format string, args ...any) {
	f.list = append(f.list, model.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// err returns all collected errors, or a plain nil if there are no errors. An empty model.FieldErrors
// would be a non-nil error.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return f.list
}

func (f *faults) key(field, value string) bool {
	switch {
	case ValidKey(value):
		return true
	case value == "":
		f.add(field, "is required: it "+KeyRule)
	default:
		f.add(field, KeyRule)
	}
	return false
}

// must checks a required field. ok reports whether the field's value is valid, and be describes a valid
// value for the error text.
func (f *faults) must(field, value, be string, ok bool) bool {
	switch {
	case ok:
	case value == "":
		f.add(field, "is required: %s", be)
	default:
		f.add(field, "must be %s", be)
	}
	return ok
}

func (f *faults) within(field string, n, least, most int64) {
	if n < least || n > most {
		f.add(field, "must be between %d and %d", least, most)
	}
}
