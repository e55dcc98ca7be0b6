package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A watched writer counts the writes of an answer. The second one waits until the client has gone.
type watched struct {
	http.ResponseWriter
	writes int
	second chan struct{} // closed when it waits
	gone   chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	if w.writes++; w.writes == 2 {
		close(w.second)
		<-w.gone
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is what a http.ResponseController calls.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestGoneClientEndsItsAnswer: a client closes its connection in the middle of a long answer. The
// rest is not made. All hits are counted, for they were charged.
func TestGoneClientEndsItsAnswer(t *testing.T) {
	n := newNode(t)
	var limits []string
	for i := range 20 {
		limits = append(limits, fmt.Sprintf(`{"name":"x%d","meter":"requests","algorithm":"token_bucket","limit":1000000,"window":"1h"}`, i))
	}
	n.setUp(strings.Join(limits, ","))
	w, ended := &watched{second: make(chan struct{}), gone: make(chan struct{})}, make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.ResponseWriter = to
		n.server.Handler().ServeHTTP(w, r)
	}))
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	check(t, err)
	body := `{"hits":[` + strings.Repeat(`{"customer":"acme","meter":"requests"},`, 999) + `{"customer":"acme","meter":"requests"}]}`
	_, err = fmt.Fprintf(conn, "POST /v1/hits/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", adminSecret, len(body), body)
	check(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if check(t, err); !strings.Contains(line, "200") {
		t.Fatal(line)
	}
	wait := func(what string, event <-chan struct{}) {
		select {
		case <-event:
		case <-time.After(20 * time.Second):
			t.Fatal(what)
		}
	}
	wait("the answer is short", w.second)
	check(t, conn.(*net.TCPConn).SetLinger(0))
	check(t, conn.Close())
	close(w.gone)
	wait("the request has not ended", ended)
	if w.writes > 20 { // of about 90
		t.Errorf("%d pieces of the answer were made", w.writes)
	}
	if text := n.want(200, "GET", "/metrics", "").text; !strings.Contains(text, "quotad_hits_total{outcome=\"allowed\"} 1000\n") {
		t.Error("not all hits were counted")
	}
}

// TestGoneClientEndsEncoding: an ordinary answer is made no further when its request is over.
func TestGoneClientEndsEncoding(t *testing.T) {
	n := newNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made := 0
	items := make([]itemMade, 1000)
	for i := range items {
		items[i].made = func() {
			if made++; made == 10 {
				cancel()
			}
		}
	}
	if body, err := n.server.encode(ctx, "", items); !errors.Is(err, context.Canceled) || made > 500 {
		t.Errorf("%d items were made, %d bytes: %v", made, len(body), err)
	}
	made = 11
	if body, err := n.server.encode(t.Context(), "", items); err != nil || made != 1011 || len(body) < 1000*1000 {
		t.Errorf("%d items, %d bytes: %v", made-11, len(body), err)
	}
}

// An itemMade is an item of 1 kB that says when it is made.
type itemMade struct{ made func() }

func (i itemMade) MarshalText() ([]byte, error) {
	i.made()
	return []byte(strings.Repeat("x", 1000)), nil
}

// TestGoneClientEndsItsViews: the limits of a customer's other meters are not viewed.
func TestGoneClientEndsItsViews(t *testing.T) {
	n := newNode(t)
	n.setUp(hourly)
	asked := 0
	body := quotaBody{Limits: limitList{make([]standing, 3), func() error { asked++; return context.Canceled }}}
	if _, err := n.server.encode(t.Context(), "", body); !errors.Is(err, context.Canceled) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}
