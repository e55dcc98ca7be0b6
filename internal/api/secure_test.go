package api

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotad/internal/api/hits"
	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/testkit"
)

// secure is the same node over TLS: by its client over HTTP/2, and by dial over HTTP/1.1.
func (n *node) secure(change ...func(*httptest.Server)) *node {
	n.t.Helper()
	web := httptest.NewUnstartedServer(nil)
	web.Config = newPatientServer(n.server.Handler()).Server
	web.EnableHTTP2 = true
	for _, f := range change {
		f(web)
	}
	web.StartTLS()
	n.t.Cleanup(web.Close)
	other := *n
	other.url, other.client = web.URL, web.Client()
	other.transport().MaxConnsPerHost = 1
	return &other
}

func (n *node) transport() *http.Transport { return n.client.Transport.(*http.Transport) }

// dial opens a connection, with TLS where the node has it, for one of the protocols.
func (n *node) dial(protocols ...string) (conn net.Conn) {
	n.t.Helper()
	var err error
	if address, secure := strings.CutPrefix(n.url, "https://"); secure {
		config := n.transport().TLSClientConfig.Clone()
		config.NextProtos, config.ServerName = protocols, "example.com"
		conn, err = tls.Dial("tcp", address, config)
	} else {
		conn, err = net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	}
	check(n.t, err)
	n.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// An upload is a batch by the node's client that does not end.
type upload struct {
	answered chan *http.Response // nil: there is none
	cancel   func()
}

// upload begins a batch that promises size bytes, and sends some.
func (n *node) upload(size, some int) *upload {
	n.t.Helper()
	ctx, cancel := context.WithCancel(testkit.Context(n.t))
	body, feed := io.Pipe()
	u := &upload{make(chan *http.Response, 1), cancel}
	n.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "POST", n.url+"/v1/hits/batch", body)
	check(n.t, err)
	r.ContentLength = int64(size)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", "application/json")
	go func() {
		response, err := n.client.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		u.answered <- response
	}()
	_, _ = io.WriteString(feed, strings.Repeat(" ", some)) // a refused one is not read to its end
	return u
}

// Bodies that do not end, on the streams of one HTTP/2 connection. It is not parallel, as the heap
// is the whole process's.
func TestUnfinishedStreamsAreBounded(t *testing.T) {
	const streams, most = 200, 4 << 20
	n := newNode(t)
	n.server.Memory = respond.NewBudget(most)
	n.setUp(manyHits)
	s := n.secure()
	s.want(200, "POST", "/v1/hits", oneHit)
	before := heap()
	uploads := make([]*upload, streams)
	for i := range uploads {
		uploads[i] = s.upload(request.MaxBatchBody, 200<<10)
		if taken := n.server.Memory.Taken(); taken > most {
			t.Fatalf("%d bytes are taken", taken)
		}
	}
	n.want(200, "POST", "/v1/hits", oneHit)
	s.want(200, "POST", "/v1/hits", oneHit)
	wantBusy(t, "one more", s.do("POST", "/v1/hits/batch", batchOf(request.MaxBatchBody)))
	// The client's part of a stream is more than the server's: net/http's client has a buffer of
	// a frame for each.
	if more := int64(heap()) - int64(before); more > most+streams*64<<10 {
		t.Errorf("%d bodies that do not end take %d MB", streams, more>>20)
	}
	refused := <-uploads[streams-1].answered
	if refused == nil || refused.StatusCode != 503 || refused.ProtoMajor != 2 || refused.Header.Get("Retry-After") != "1" {
		t.Errorf("the last one: %+v", refused)
	}
	for _, u := range uploads {
		u.cancel()
	}
	testkit.Eventually(t, "all is given back", func() bool { return n.server.Memory.Taken() == 0 })
	s.want(200, "POST", "/v1/hits/batch", batchOf(request.MaxBatchBody))
}

// A body that stalls ends after one read timeout, of its stream or its connection. A handshake has as
// long, so it is not shorter.
func TestStalledBodiesOverTLS(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(manyHits)
	s := n.secure(func(web *httptest.Server) { web.Config.ReadTimeout = 2 * time.Second })
	for range 3 { // the connections have been served before
		s.want(200, "POST", "/v1/hits", oneHit)
		select {
		case got := <-s.upload(100, 1).answered:
			if got == nil || got.StatusCode != 408 || got.ProtoMajor != 2 {
				t.Errorf("%+v", got)
			}
		case <-time.After(testkit.Patience):
			t.Fatal("a stream that stalls is not given up")
		}
	}
}

// Clients that do not read their answers on HTTP/2 hold no place of a batch; the oldest goes.
func TestSlowReadersOverHTTP2(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	s := n.secure()
	s.transport().HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 4 << 10} // no stream takes more
	look := `{"customer":"acme","meter":"requests","dry_run":true}`
	body := `{"hits":[` + look + strings.Repeat(","+look, 99) + `]}`
	slow := func() *http.Response {
		r, err := http.NewRequestWithContext(testkit.Context(t), "POST", s.url+"/v1/hits/batch", strings.NewReader(body))
		check(t, err)
		r.Header.Set("Authorization", "Bearer "+adminSecret)
		r.Header.Set("Content-Type", "application/json")
		response, err := s.client.Do(r)
		check(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		if response.StatusCode != 200 || response.ProtoMajor != 2 {
			t.Fatalf("%+v", response)
		}
		return response
	}
	var readers []*http.Response
	for i := range hits.MaxUnread {
		readers = append(readers, slow())
		if i == hits.MaxBatches {
			n.want(200, "POST", "/v1/hits/batch", body)
		}
	}
	testkit.Eventually(t, "all are being written", func() bool { return n.server.hits.Unread.Writing() == hits.MaxUnread })
	readers = append(readers, slow())
	for i, want := range map[int]bool{0: false, 1: true, hits.MaxUnread: true} {
		text, err := io.ReadAll(readers[i].Body)
		if whole := err == nil && strings.HasSuffix(string(text), "]}"); whole != want {
			t.Errorf("answer %d: %d bytes, %v", i, len(text), err)
		}
	}
}

// frame is the head of an HTTP/2 frame of stream 0.
func frame(kind byte, length uint32) []byte {
	return append(binary.BigEndian.AppendUint32(nil, length<<8|uint32(kind)), 0, 0, 0, 0, 0)
}

const (
	frameData     = 0
	frameSettings = 4
	frameGoAway   = 7
)

// What a connection may promise before there is a key: nothing is kept for a frame that it does
// not send, and little for what no handler reads.
func TestPromisesOfHTTP2(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	conn := n.secure().dial("h2")
	check(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err := conn.Write(slices.Concat([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0), frame(frameData, 1<<20)))
	check(t, err)
	settings := map[uint16]uint32{}
	for {
		head := make([]byte, 9)
		if _, err = io.ReadFull(conn, head); err != nil {
			t.Fatalf("a frame of 1 MiB is waited for: %v", err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head)>>8)
		_, err = io.ReadFull(conn, payload)
		check(t, err)
		if head[3] == frameGoAway {
			break
		}
		for head[3] == frameSettings && len(payload) >= 6 {
			settings[binary.BigEndian.Uint16(payload)] = binary.BigEndian.Uint32(payload[2:])
			payload = payload[6:]
		}
	}
	const concurrentStreams, initialWindow, frameSize = 3, 4, 5
	for name, want := range map[uint16]uint32{concurrentStreams: maxStreams, initialWindow: streamBuffer, frameSize: maxFrame} {
		if settings[name] != want {
			t.Errorf("setting %d is %d, not %d", name, settings[name], want)
		}
	}
}

// narrow is a listener whose connections keep little of what their clients do not take.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// deaf is a connection that stops reading.
type deaf struct {
	net.Conn
	stopped atomic.Bool
	closed  chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	if d.stopped.Load() {
		<-d.closed
		return 0, net.ErrClosed
	}
	return n, err
}

// A client that takes nothing at all from an HTTP/2 connection: its streams cannot even be reset,
// so the connection is closed, or their handlers would never end.
func TestConnectionThatTakesNothing(t *testing.T) {
	t.Parallel()
	const streams = 8
	n := newNode(t)
	var under atomic.Int64
	s := n.secure(func(web *httptest.Server) {
		web.Config.WriteTimeout, web.Config.HTTP2.WriteByteTimeout = 3*time.Second, 3*time.Second
		web.Listener = narrow{web.Listener}
		inner := web.Config.Handler
		web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			under.Add(1)
			defer under.Add(-1)
			inner.ServeHTTP(w, r)
		})
	})
	client := &deaf{closed: make(chan struct{})}
	defer close(client.closed)
	s.transport().DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		tcp, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		client.Conn = tcp
		config := s.transport().TLSClientConfig.Clone()
		config.ServerName, config.NextProtos = "example.com", []string{"h2"}
		conn := tls.Client(client, config)
		return conn, conn.HandshakeContext(ctx)
	}
	s.want(200, "GET", "/livez", "")
	client.stopped.Store(true)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	for range streams {
		r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/openapi.json", nil)
		check(t, err)
		go func() {
			if response, err := s.client.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}()
	}
	testkit.Eventually(t, "all are being answered", func() bool { return under.Load() == streams })
	testkit.Eventually(t, "all have ended", func() bool { return under.Load() == 0 })
}
