package client

// List is one page of a list. NextCursor is nil at the end.
type List[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}
