package client

// List is one page of a list. NextCursor is nil on the last page.
type List[T any] struct {
	Items      []T     `json:"items" doc:"The items of this page, in the order of the list."`
	NextCursor *string `json:"next_cursor" doc:"The cursor of the next page, to send as the query parameter cursor. Null on the last page."`
}
