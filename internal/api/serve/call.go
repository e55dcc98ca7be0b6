package serve

import (
	"context"
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// An Answer is what an ordinary route gives back; see Route.Handle.
type Answer struct {
	Status int
	ETag   string // unquoted; empty: none
	Body   any    // nil: none (204)
}

// Params are what is known of a request before its body is read.
type Params struct {
	Query request.Query
	From  queue.SenderID // the id of its key
}

// A Call is one request to an ordinary route: allowed, its query checked, its body read.
type Call struct {
	R     *http.Request
	Query request.Query
	From  queue.SenderID
	Body  []byte
}

// Ctx ends when the request has waited for too long, or its client has gone.
func (c *Call) Ctx() context.Context { return c.R.Context() }

// ListAnswer is the answer with a page of the store. show turns an item into what is shown of
// it.
func ListAnswer[From, To any](page *plans.List[From], err error, show func(From) To) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	body := client.List[To]{Items: make([]To, len(page.Items))}
	for i, item := range page.Items {
		body.Items[i] = show(item)
	}
	if page.Next != "" {
		body.NextCursor = &page.Next
	}
	return Answer{Status: http.StatusOK, Body: body}, nil
}

// PutStatus is the status of a write that made something, or changed it.
func PutStatus(isNew bool) int {
	if isNew {
		return http.StatusCreated
	}
	return http.StatusOK
}
