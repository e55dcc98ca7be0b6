package model

import (
	"fmt"
	"strings"
)

// StaleError says that a counter was judged under a newer change number than the hit's
// target was resolved under, or that an override of the target has ended (Target.Over).
// Nothing was charged: resolve again, at Change or later.
type StaleError struct{ Change int64 }

func (e *StaleError) Error() string {
	return fmt.Sprintf("the limits were resolved before change %d; nothing was charged", e.Change)
}

// FieldError says what is wrong with one field of an input and what to do about it.
// Field is a path such as "limits[0].window".
type FieldError struct{ Field, Detail string }

// FieldErrors is all that is wrong with an input; never empty when used as an error.
type FieldErrors []FieldError

func (e FieldErrors) Error() string {
	parts := make([]string, len(e))
	for i, f := range e {
		parts[i] = f.Field + ": " + f.Detail
	}
	return strings.Join(parts, "; ")
}
