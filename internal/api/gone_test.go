package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"quotad/internal/testkit"
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
	_, err = fmt.Fprintf(conn, "POST /v1/hits/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		adminSecret, len(body), body)
	check(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if check(t, err); !strings.Contains(line, "200") {
		t.Fatal(line)
	}
	wait := func(what string, event <-chan struct{}) {
		select {
		case <-event:
		case <-time.After(testkit.Patience):
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
