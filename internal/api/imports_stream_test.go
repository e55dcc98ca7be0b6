package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"quotad/internal/api/imports"
	"quotad/internal/testkit"
)

// stream begins an import whose body is written to w; its answer begins with the first
// lines that are done.
func (n *node) stream(media string) (w *io.PipeWriter, answered chan *http.Response) {
	n.t.Helper()
	return n.streamBy(http.DefaultClient, n.url, media)
}

func (n *node) streamBy(client *http.Client, url, media string) (w *io.PipeWriter, answered chan *http.Response) {
	n.t.Helper()
	body, w := io.Pipe()
	r, err := http.NewRequestWithContext(testkit.Context(n.t), "POST", url+"/v1/imports", body)
	check(n.t, err)
	r.Header.Set("Authorization", "Bearer "+adminSecret)
	r.Header.Set("Content-Type", media)
	answered = make(chan *http.Response, 1)
	go func() {
		response, err := client.Do(r)
		if err != nil {
			n.t.Error(err)
			response = &http.Response{Body: http.NoBody}
		}
		answered <- response
	}()
	return w, answered
}

// Errors come while lines are still sent, over HTTP/1 and HTTP/2.
func TestImportsAnswerMeanwhile(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(hourly)
	secure := httptest.NewUnstartedServer(nil)
	secure.Config = newPatientServer(n.server.Handler()).Server
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	for proto, at := range map[string]struct {
		client *http.Client
		url    string
	}{"HTTP/1.1": {http.DefaultClient, n.url}, "HTTP/2.0": {secure.Client(), secure.URL}} {
		w, answered := n.streamBy(at.client, at.url, "application/jsonl")
		_, err := io.WriteString(w, "x\n")
		check(t, err)
		response := <-answered
		answer := bufio.NewReader(response.Body)
		if response.Proto != proto || response.StatusCode != 200 {
			t.Errorf("%s %s", response.Proto, response.Status)
		}
		for i := range 3 {
			begun, err := answer.ReadString('\n')
			if err != nil || !strings.Contains(begun, fmt.Sprintf(`{"line":%d,"status":400,`, i+1)) {
				t.Fatalf("%s: answered %q, %v", proto, begun, err)
			}
			_, err = io.WriteString(w, "x\n")
			check(t, err)
		}
		check(t, w.Close())
		rest, err := io.ReadAll(answer)
		check(t, err)
		if !bytes.HasSuffix(rest, []byte(`],"lines":4,"imported":0,"replayed":0,"failed":4}`+"\n")) {
			t.Errorf("%s: the end is %q", proto, rest)
		}
	}
}

// connect begins an import of this length on a connection of its own.
func (n *node) connect(length int) net.Conn {
	n.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
	check(n.t, err)
	n.t.Cleanup(func() { _ = conn.Close() })
	check(n.t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	_, err = fmt.Fprintf(conn, "POST /v1/imports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n",
		adminSecret, length)
	check(n.t, err)
	return conn
}

// answer reads what is answered on a connection, which is closed then.
func (n *node) answer(conn net.Conn) (got reply) {
	n.t.Helper()
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	check(n.t, err)
	text, err := io.ReadAll(response.Body)
	check(n.t, err)
	got = reply{status: response.StatusCode, header: response.Header, text: string(text)}
	check(n.t, json.Unmarshal(text, &got.json))
	if _, err := r.ReadByte(); err == nil || !response.Close {
		n.t.Errorf("the connection goes on: %v", err)
	}
	return got
}

// A body that is cut off, or stalls, in the middle of a line: those before it are done, it
// is not, and the whole is sent again.
func TestImportsThatBreakOff(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.setUp(`{"name":"seats","meter":"requests","algorithm":"allocation","limit":1000}`)
	var lines strings.Builder
	for i := range 100 {
		lines.WriteString(usageLine(fmt.Sprint(i), 1, "2026-01-31T12:00:00Z") + "\n")
	}
	all := lines.String()
	part := all[:len(all)/2]
	whole := strings.Count(part, "\n")
	if strings.HasSuffix(part, "\n") {
		t.Fatal("it does not end within a line")
	}
	cut := func(done, replayed int, status float64, why string, end func(net.Conn)) {
		t.Helper()
		conn := n.connect(len(all))
		_, err := io.WriteString(conn, part)
		check(t, err)
		end(conn)
		got := n.answer(conn)
		n.counts(got, done, replayed, 1)
		broken := got.json["errors"].([]any)[0].(map[string]any)
		if broken["line"] != float64(whole+1) || broken["status"] != status || !strings.HasPrefix(got.json["stopped"].(string), why) {
			t.Errorf("%s: %s", why, got.text)
		}
		n.standing("acme", float64(whole), 0)
	}
	cut(whole, 0, 400, "the body ended before it was complete", func(conn net.Conn) { check(t, conn.(*net.TCPConn).CloseWrite()) })
	n.server.imports.Wait = 10 * time.Second // for the database, too
	cut(0, whole, 408, "the body did not arrive in time", func(net.Conn) {})
	n.server.imports.Wait = testkit.Patience
	n.imported(all, 100-whole, whole, 0)
	n.standing("acme", 100, 0)
}

// 20,000 lines, every tenth of them wrong: the memory stays what it was after the first
// thousand, and every error is there.
func TestManyLines(t *testing.T) {
	n := newNode(t)
	n.setUp(`{"name":"many","meter":"requests","algorithm":"allocation","limit":1000000}`)
	const all = 20_000
	w, answered := n.stream("application/x-ndjson")
	inUse := make(chan uint64, 2)
	go func() {
		for i := range all {
			line := usageLine(fmt.Sprint(i), 1, "2026-01-31T12:00:00Z") + "\n"
			if i%10 == 3 {
				line = usageLine(fmt.Sprint(i), 0, strings.Repeat("long", 100)) + "\n"
			}
			switch i {
			case 1000, all - 100:
				inUse <- heap()
			}
			_, _ = io.WriteString(w, line) // the answer tells
		}
		_ = w.Close()
	}()
	response := <-answered
	defer response.Body.Close()
	// Read as it comes and kept as numbers, so that the test needs no memory either.
	told, end := 0, ""
	answer := bufio.NewReader(response.Body)
	for {
		part, err := answer.ReadString('\n')
		for rest := part; ; told++ {
			_, after, found := strings.Cut(rest, `{"line":`)
			if !found {
				break
			}
			if !strings.HasPrefix(after, fmt.Sprint(10*told+4, ",")) {
				t.Fatalf("the %d. error is of line %.20s", told, after)
			}
			rest = after
		}
		if part != "" {
			end = part
		}
		if err != nil {
			break
		}
	}
	if told != all/10 || !strings.Contains(end, fmt.Sprintf(`"lines":%d,"imported":%d,"replayed":0,"failed":%d}`, all, all-all/10, all/10)) {
		t.Errorf("%d errors, and then %.200q", told, end)
	}
	n.standing("acme", all-all/10, 0)
	if early, late := <-inUse, <-inUse; late > early+8<<20 {
		t.Errorf("it took %d bytes behind 1,000 lines and %d at the end", early, late)
	}
}

// heap is what is in use, in bytes. Pools lose what they hold by the second collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What is too large is told at once, or where it begins to be.
func TestLargeImports(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if got := n.answer(n.connect(imports.MaxSize + 1)); got.status != 413 || got.json["type"] != "/problems/too-large" {
		t.Errorf("%d %s", got.status, got.text)
	}
}
