package hits

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// MaxUnread is how many answers of batches may be on their way to their clients at once: each
// keeps its decisions in memory until all of it is written.
const MaxUnread = 128

// unread are the answers of batches that are being written, the oldest first. They hold no
// place of a batch under way: a client that reads slowly keeps nobody else waiting. Beyond
// MaxUnread the oldest is cut off, so that memory stays bounded whoever reads or does not.
type unread struct {
	mu  sync.Mutex
	all []*http.ResponseController
}

// begin is called before an answer is written; end after it, and before its handler returns.
func (u *unread) begin(w http.ResponseWriter) (end func()) {
	c := http.NewResponseController(w)
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == MaxUnread {
		// Under the lock, or the oldest could be done and its connection at another request.
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

// Writing is how many answers of batches are being written.
func (u *unread) Writing() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}
