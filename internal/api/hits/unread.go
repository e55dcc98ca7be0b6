package hits

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// MaxUnread is the maximum number of batch responses that may be in transmission at once. Each response keeps
// its decisions in memory until it has been written completely.
const MaxUnread = 128

// unread lists the batch responses that are being written, the oldest first. These responses occupy no place of
// a batch, so a client that reads slowly does not delay others. Above MaxUnread the oldest response is cut off,
// so that memory stays bounded however slowly clients read.
type unread struct {
	mu  sync.Mutex
	all []*http.ResponseController
}

// begin must be called before a response is written. The caller must call end after the response and before its
// handler returns.
func (u *unread) begin(w http.ResponseWriter) (end func()) {
	c := http.NewResponseController(w)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == MaxUnread {
		// The lock is held, because otherwise the oldest response could end and its connection could already
		// serve another request.
		_ = u.all[0].SetWriteDeadline(time.Unix(1, 0))
		u.all = slices.Delete(u.all, 0, 1)
	}
	u.all = append(u.all, c)
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if i := slices.Index(u.all, c); i >= 0 {
			u.all = slices.Delete(u.all, i, i+1)
		}
	}
}

// Writing returns the number of batch responses that are being written.
func (u *unread) Writing() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}
