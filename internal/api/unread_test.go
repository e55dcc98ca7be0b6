package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/hits"
	"quotad/internal/testkit"
)

// A slowReader takes nothing of its answer until its time to write is over.
type slowReader struct {
	http.ResponseWriter
	writing, over chan struct{}
	ended         chan struct{} // its request
}

func (s *slowReader) Write([]byte) (int, error) {
	close(s.writing)
	<-s.over
	return 0, http.ErrHandlerTimeout
}

// SetWriteDeadline is what a http.ResponseController calls.
func (s *slowReader) SetWriteDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		close(s.over)
	}
	return nil
}

func (n *node) slowReader(body string) *slowReader {
	w := &slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	r := httptest.NewRequestWithContext(n.t.Context(), "POST", "/v1/hits/batch", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", "application/json")
	go func() {
		defer close(w.ended)
		n.server.Handler().ServeHTTP(w, r)
	}()
	<-w.writing
	return w
}

// Clients that do not read their answers keep no batch of others waiting, and what they keep
// in memory has a bound: the oldest goes.
func TestSlowReadersHoldNoBatch(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	const body = `{"hits":[{"customer":"acme","meter":"requests","dry_run":true}]}`
	readers := make([]*slowReader, hits.MaxUnread)
	for i := range readers {
		readers[i] = n.slowReader(body)
		if i == hits.MaxBatches {
			n.want(200, "POST", "/v1/hits/batch", body)
		}
	}
	for oldest := range 3 {
		for _, r := range readers[oldest:] {
			select {
			case <-r.over:
				t.Fatal("a client was cut off that was not one too many")
			default:
			}
		}
		n.want(200, "POST", "/v1/hits/batch", body)
		select {
		case <-readers[oldest].ended:
		case <-time.After(testkit.Patience):
			t.Fatal("the one that had been slow for longest was not cut off")
		}
		readers = append(readers, n.slowReader(body))
	}
	for _, r := range readers[3:] {
		close(r.over)
		<-r.ended
	}
	if left := n.server.hits.Unread.Writing(); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// Clients whose batches do not come hold no place either.
func TestSlowSendersHoldNoBatch(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	secure := n.secure()
	for range hits.MaxBatches {
		n.unfinished(100, 1)
		secure.unfinished(100, 1)
		secure.upload(100, 1)
	}
	for range 3 {
		n.want(200, "POST", "/v1/hits/batch", `{"hits":[{"customer":"acme","meter":"requests"}]}`)
	}
}
