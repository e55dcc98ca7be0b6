package model

import (
	"fmt"
	"strings"
)

// StaleError reports that a counter was judged under a newer change number than the target of the hit, or that an
// override of the target has ended (Target.Over). Nothing was charged. Resolve the target again at Change or
// later.
type StaleError struct{ Change int64 }

func (e *StaleError) Error() string {
	return fmt.Sprintf("the limits were resolved before change %d; nothing was charged", e.Change)
}

// FieldError describes an error in one field of an input and the correction. Field is a path such as
// "limits[0].window".
type FieldError struct{ Field, Detail string }

// FieldErrors contains all errors of an input. It is never empty when used as an error.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	parts := make([]string, len(e))
	for i, f := range e {
		parts[i] = f.Field + ": " + f.Detail
	}
	return strings.Join(parts, "; ")
}
