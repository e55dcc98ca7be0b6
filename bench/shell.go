package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// shellCommand is the hidden sub-command that answers requests with nothing behind it, or
// for contrast with one call to something else.
const shellCommand = "shell"

// An answer is a real one of quotad's, which the shell gives to every request.
type answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// ServeHTTP does what every handler must: reads the body, and writes headers and bytes.
func (a *answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // who cannot send does not read, either
	a.write(w)
}

func (a *answer) write(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.Header {
		header[name] = values
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // as above
}

// ask sends a row's request to quotad and keeps what is answered.
func ask(ctx context.Context, client *http.Client, address string, t template) (*answer, error) {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(t.append(nil, 0, 0)))))
	if err != nil {
		return nil, err
	}
	request = request.WithContext(ctx)
	request.RequestURI, request.URL.Scheme, request.URL.Host = "", "http", address // as a client has it
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	// These are net/http's own in every handler.
	response.Header.Del("Date")
	response.Header.Del("Content-Length")
	return &answer{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// runShell serves an answer until it is ended. The first line on out is its address.
func runShell(args []string, out io.Writer) error {
	set := flag.NewFlagSet(shellCommand, flag.ContinueOnError)
	file := set.String("answer", "", "file of what to answer")
	kind := set.String("backend", "", "what to call first")
	where := set.String("where", "", "the backend's address")
	if err := set.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	a := &answer{}
	if err := json.Unmarshal(text, a); err != nil {
		return err
	}
	var handler http.Handler = a
	if *kind != "" {
		call, err := openBackend(context.Background(), *kind, *where)
		if err != nil {
			return err
		}
		handler = &contrast{answer: a, allow: call}
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return err
	}
	//nolint:gosec // no timeouts, whose timers would cost: it serves the bench only, and ends with it
	return http.Serve(listener, handler)
}

// shellWait is how long a shell may take to start.
const shellWait = 30 * time.Second

// startShell starts the sub-command in a process of its own and returns its address.
func (b *bench) startShell(ctx context.Context, a *answer, kind, where string) (*child, string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(b.dir, "answer.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, "", err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer read.Close()
	//nolint:noctx // it outlives any context; stop ends it
	cmd := exec.Command(self, shellCommand, "-answer="+file, "-backend="+kind, "-where="+where)
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	c, err := spawn("the shell "+kind, cmd)
	write.Close() // the child has its own
	if err != nil {
		return nil, "", err
	}
	if err := read.SetReadDeadline(time.Now().Add(shellWait)); err != nil {
		return nil, "", errJoinStop(err, c)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		return nil, "", errJoinStop(fmt.Errorf("the shell %s did not start: %w", kind, err), c)
	}
	return c, strings.TrimSpace(line), ctx.Err()
}
