package respond

import "time"

// Time is an instant, µs.
func Time(at int64) time.Time { return time.UnixMicro(at).UTC() }

// OrNull is null for an empty text.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// InstantOrNull is null for none.
func InstantOrNull(at *int64) *time.Time {
	if at == nil {
		return nil
	}
	t := Time(*at)
	return &t
}

// Listed is an empty list for none, which JSON would show as null.
func Listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
