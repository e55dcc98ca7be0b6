package api

import (
	"net/http"

	"quotad/client"
	"quotad/internal/plans"
)

// asItIs is the show function of items that answers show as the store returns them.
func asItIs[T any](item T) T { return item }

// listAnswer is the answer with a page of the store. show turns an item into what is shown of
// it.
func listAnswer[From, To any](page *plans.List[From], err error, show func(From) To) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	body := client.List[To]{Items: make([]To, len(page.Items))}
	for i, item := range page.Items {
		body.Items[i] = show(item)
	}
	if page.Next != "" {
		body.NextCursor = &page.Next
	}
	return answer{status: http.StatusOK, body: body}, nil
}
