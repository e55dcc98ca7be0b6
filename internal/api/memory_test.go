package api

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"quotad/internal/api/request"
	"quotad/internal/api/respond"
	"quotad/internal/testkit"
)

const manyHits = `{"name":"daily","meter":"requests","algorithm":"fixed_window","limit":100000,"window":"1d"}`

// batchOf is a batch of one hit, in so many bytes.
func batchOf(size int) string {
	body := `{"hits":[` + oneHit + `]}`
	return strings.Repeat(" ", size-len(body)) + body
}

// unfinished opens a connection with a batch that promises size bytes, and sends some.
func (n *node) unfinished(size, some int) net.Conn {
	n.t.Helper()
	conn := n.dial()
	check(n.t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err := io.WriteString(conn, "POST /v1/hits/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+adminSecret+
		"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(size)+"\r\n\r\n"+strings.Repeat(" ", some))
	check(n.t, err)
	return conn
}

// wantBusy fails unless an answer is the 503 of a node without memory for bodies.
func wantBusy(t testing.TB, what string, got reply) {
	t.Helper()
	if got.status != 503 || got.json["type"] != "/problems/too-busy" || got.header.Get("Retry-After") != "1" ||
		!strings.Contains(got.text, "memory that this node gives to bodies and answers") {
		t.Errorf("%s: %d %v %s", what, got.status, got.header, got.text)
	}
}

// Bodies that do not end take no more memory than bodies may, and hits pass beside them.
func TestUnfinishedBodiesAreBounded(t *testing.T) {
	n := newNode(t)
	n.setUp(manyHits)
	t.Run("plain", func(t *testing.T) { n.unfinishedBodies(t, 48<<10) })
	// Each end of TLS takes some 20 KiB for itself.
	t.Run("TLS", func(t *testing.T) { n.secure().unfinishedBodies(t, 96<<10) })
}

// unfinishedBodies has many clients not end their bodies. A connection may take some bytes for
// itself.
func (n *node) unfinishedBodies(t *testing.T, connection int64) {
	const clients, most = 300, 4 << 20
	in := *n
	in.t, n = t, &in
	n.server.Memory = respond.NewBudget(most)
	before := heap()
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = n.unfinished(request.MaxBatchBody, 200<<10)
		if taken := n.server.Memory.Taken(); taken > most {
			t.Fatalf("%d bytes are taken", taken)
		}
	}
	n.want(200, "POST", "/v1/hits", oneHit)
	wantBusy(t, "one more", n.do("POST", "/v1/hits/batch", batchOf(request.MaxBatchBody)))
	// A connection takes some 30 KiB without a body.
	if more := int64(heap()) - int64(before); more > most+clients*connection {
		t.Errorf("%d bodies that do not end take %d MB", clients, more>>20)
	}
	refused, err := http.ReadResponse(bufio.NewReader(conns[clients-1]), nil)
	if err != nil || refused.StatusCode != 503 || !refused.Close || refused.Header.Get("Retry-After") != "1" {
		t.Errorf("the last one: %+v, %v", refused, err)
	}
	if text := n.want(200, "GET", "/metrics", "").text; !strings.Contains(text, "\nquotad_body_memory_refused_total 2") {
		t.Error("the metrics do not count them")
	}
	for _, conn := range conns {
		check(t, conn.Close())
	}
	testkit.Eventually(t, "all is given back", func() bool { return n.server.Memory.Taken() == 0 })
	n.want(200, "POST", "/v1/hits/batch", batchOf(request.MaxBatchBody))
}

// What a body takes follows what has come of it, whatever it promised.
func TestBodiesTakeWhatHasCome(t *testing.T) {
	n := newNode(t)
	n.setUp(manyHits)
	conn := n.unfinished(request.MaxBatchBody, 1)
	for sent, taken := range map[int]int64{1: 0, respond.Free - 1: 0, respond.Free + 1: 3 * respond.Free} {
		one := n.unfinished(request.MaxBatchBody, sent)
		time.Sleep(50 * time.Millisecond)
		testkit.Eventually(t, strconv.Itoa(sent)+" bytes", func() bool { return n.server.Memory.Taken() == taken })
		check(t, one.Close())
		testkit.Eventually(t, "none is taken", func() bool { return n.server.Memory.Taken() == 0 })
	}
	_, err := io.WriteString(conn, batchOf(request.MaxBatchBody-1)) // each read gets what is there
	check(t, err)
	done, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || done.StatusCode != 200 {
		t.Errorf("%+v, %v", done, err)
	}
}

// Bodies of one key that do not end leave room for those of another, of whatever size.
func TestUnfinishedBodiesOfOneKey(t *testing.T) {
	n := newNode(t)
	n.server.Memory = respond.NewBudget(4 << 20)
	n.setUp(manyHits)
	other := n.key("backend")
	for range 50 {
		n.unfinished(request.MaxBatchBody, 200<<10)
	}
	testkit.Eventually(t, "half is taken, as far as whole bodies fit", func() bool { return n.server.Memory.Taken() > 3<<19 })
	got := n.do("POST", "/v1/hits/batch", batchOf(request.MaxBatchBody))
	if wantBusy(t, "one more of the key", got); !strings.Contains(got.text, "this API key") {
		t.Errorf("one more of the key: %s", got.text)
	}
	n.want(200, "POST", "/v1/hits/batch", batchOf(request.MaxBatchBody), "Authorization", other)
	if text := n.want(200, "GET", "/metrics", "").text; !strings.Contains(text, "\nquotad_body_memory_over_share_total ") ||
		strings.Contains(text, "\nquotad_body_memory_over_share_total 0\n") {
		t.Error("the metric does not count them")
	}
}

// The least that the setting allows has room for the largest batch, one at a time.
func TestOneBatchFits(t *testing.T) {
	n := newNode(t)
	n.server.Memory = respond.NewBudget(request.MaxBatchBody)
	n.setUp(manyHits)
	for range 2 {
		n.want(200, "POST", "/v1/hits/batch", batchOf(request.MaxBatchBody))
	}
}

// Without memory for bodies, large ones and large answers are refused, on a connection that
// lives on; small ones pass.
func TestNoMemoryForBodies(t *testing.T) {
	n := newNode(t)
	n.setUp(manyHits)
	notes := ""
	for i := range 10 {
		notes += `,"` + strconv.Itoa(i) + `":"` + strings.Repeat("x", 500) + `"`
	}
	metadata := `{"name":"Acme","plan":"pro","timezone":"UTC","metadata":{` + notes[1:] + `}}`
	etag := n.want(200, "GET", "/v1/customers/acme", "").header.Get("ETag")
	etag = n.want(200, "PUT", "/v1/customers/acme", metadata, "If-Match", etag).header.Get("ETag")
	n.server.Memory = respond.NewBudget(1)
	wantBusy(t, "an answer", n.do("GET", "/v1/customers/acme", ""))
	wantBusy(t, "a body", n.do("PUT", "/v1/customers/acme", metadata, "If-Match", etag))
	large := strings.Repeat(" ", respond.Free) + `{"customer":"acme","meter":"requests","cost":1,"id":"a"}`
	for _, path := range []string{"/v1/hits", "/v1/refunds", "/v1/reservations", "/v1/reservations/x/commit", "/v1/hits/batch"} {
		got := n.do("POST", path, large)
		wantBusy(t, path, got)
		if got.header.Get("Connection") == "close" {
			t.Errorf("%s: the connection is closed", path)
		}
	}
	n.want(200, "POST", "/v1/hits", oneHit)
	n.want(200, "PUT", "/v1/customers/acme", `{"name":"Acme","plan":"pro","timezone":"UTC"}`, "If-Match", etag)
	n.want(200, "GET", "/v1/customers/acme", "")
	if taken := n.server.Memory.Taken(); taken != 0 {
		t.Errorf("%d bytes are taken by nobody", taken)
	}
}
