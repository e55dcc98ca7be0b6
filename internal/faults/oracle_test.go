package faults

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"quotad/internal/testkit"
)

const question, reply = "what is the answer to this?\n", "it is forty-two\n"

// oracle answers each question, and keeps all that it heard.
type oracle struct {
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	heard    bytes.Buffer
	answered int
}

func newOracle(t *testing.T, network, at string) *oracle {
	t.Helper()
	listener, err := net.Listen(network, at)
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{listener: listener}
	o.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.running.Go(func() { o.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		o.running.Wait()
	})
	return o
}

func (o *oracle) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		o.mu.Lock()
		o.heard.WriteString(line)
		if err == nil {
			o.answered++
		}
		o.mu.Unlock()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(reply))
	}
}

func (o *oracle) knows() (heard string, answered int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.heard.String(), o.answered
}

// hears waits until something was heard: the proxy is done before the oracle has accepted.
func (o *oracle) hears(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, "something is heard", func() bool { heard, _ := o.knows(); return heard != "" })
}

// ask sends the question and returns all of the answer that came before its end.
func ask(t *testing.T, conn net.Conn) (answer string, err error) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := conn.Write([]byte(question)); err != nil {
		return "", err
	}
	b := make([]byte, len(reply))
	n, err := io.ReadFull(conn, b)
	return string(b[:n]), err
}
