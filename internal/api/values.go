package api

import "time"

// timeOf is an instant, µs.
func timeOf(at int64) time.Time { return time.UnixMicro(at).UTC() }

// orNull is null for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// instantOrNull is null for none.
func instantOrNull(at *int64) *time.Time {
	if at == nil {
		return nil
	}
	t := timeOf(*at)
	return &t
}

// listed is an empty list for none, which JSON would show as null.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
