package api

import (
	"context"
	"net/http"

	"quotad/client"
	"quotad/internal/api/request"
	"quotad/internal/plans"
	"quotad/internal/quota/queue"
)

// An answer is what an ordinary route gives back; see route.handle.
type answer struct {
	status int
	etag   string // unquoted; empty: none
	body   any    // nil: none (204)
}

// params are what is known of a request before its body is read.
type params struct {
	query request.Query
	from  queue.SenderID // the id of its key
}

// A call is one request to an ordinary route: allowed, its query checked, its body read.
type call struct {
	r     *http.Request
	query request.Query
	from  queue.SenderID
	body  []byte
}

func (c *call) ctx() context.Context { return c.r.Context() }

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

func putStatus(isNew bool) int {
	if isNew {
		return http.StatusCreated
	}
	return http.StatusOK
}
