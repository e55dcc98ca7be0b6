package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// hitEach sends a node one hit for each of a set's customers from one to another, by many
// connections, each customer once.
func (b *bench) hitEach(ctx context.Context, n *node, set string, from, to int) error {
	t := templateOf(&row{set: set, load: load{pick: uniform}}, b.service.backend, "")
	if len(t.list) > 0 {
		return fmt.Errorf("%s: no customers to choose from", set)
	}
	deadline := time.Now().Add(requestWait + time.Duration(to-from)*time.Millisecond)
	var next atomic.Int64
	next.Store(int64(from))
	all, ctx := errgroup.WithContext(ctx)
	for range manyConns {
		all.Go(func() error {
			c, err := dial(ctx, n.address, deadline)
			if err != nil {
				return err
			}
			defer c.Close()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					return nil
				}
				c.out = t.append(c.out[:0], i, 0)
				if status, err := c.roundTrip(); err != nil || status != 200 {
					return fmt.Errorf("the hit of customer %d is answered %d %s (%w)", i, status, c.got, err)
				}
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

// pairs is a closed loop of reservations, each committed before its connection makes the
// next one. wrk's scripts cannot tell connections apart, so it is the bench's own.
type pairs struct {
	template template
	address  string
	key      string
	conns    int
	seed     uint64
}

// run keeps the connections busy for d. An operation is a reservation and its commit.
func (p *pairs) run(ctx context.Context, d time.Duration) (closed, error) {
	parts := make([]closed, p.conns)
	cpu, began := ownCPU(), time.Now()
	all, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		all.Go(func() error {
			c, err := dial(ctx, p.address, began.Add(d+requestWait))
			if err != nil {
				return err
			}
			defer c.Close()
			choose := p.template.chooser(p.seed<<16 + uint64(i))
			for ctx.Err() == nil && time.Since(began) < d {
				if err := p.one(c, choose(), &parts[i]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	err := all.Wait()
	sum := closed{}
	for _, part := range parts {
		sum = sum.beside(part)
	}
	sum.took, sum.cpu = time.Since(began), ownCPU()-cpu
	return sum, err
}

// one reserves and commits.
func (p *pairs) one(c *conn, number int, to *closed) error {
	c.out = p.template.append(c.out[:0], number, 0)
	status, err := c.roundTrip()
	if err != nil {
		return err
	}
	_, rest, ok := bytes.Cut(c.got, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	if status != 201 || !ok {
		return fmt.Errorf("%w: a reservation is answered %d: %s", errAnswers, status, c.got)
	}
	c.out = append(c.out[:0], post("/v1/reservations/"+string(id)+"/commit", p.key, `{"cost":1}`)...)
	if status, err = c.roundTrip(); err != nil {
		return err
	}
	if status/100 != 2 {
		return fmt.Errorf("%w: a commit is answered %d: %s", errAnswers, status, strings.TrimSpace(string(c.got)))
	}
	to.operations++
	return nil
}

// maxAnswer bounds an answer with its headers, in bytes.
const maxAnswer = 64 << 10

var errAnswer = errors.New("an answer that the bench cannot read")

var (
	headerEnd    = []byte("\r\n\r\n")
	lengthHeader = []byte("\r\nContent-Length: ")
)

// parseAnswer reads as much of HTTP as the answers to the bench's requests need, for the
// machine is shared with what is measured. size is that of the whole answer, 0 while
// there is more to come.
func parseAnswer(b []byte) (status int, body []byte, size int, err error) {
	const version, code = len("HTTP/1.1 "), len("200")
	end := bytes.Index(b, headerEnd)
	if end < 0 {
		if len(b) >= maxAnswer {
			err = fmt.Errorf("%w: no end of its headers", errAnswer)
		}
		return 0, nil, 0, err
	}
	header := b[:end+2]
	if len(header) < version+code {
		return 0, nil, 0, fmt.Errorf("%w: %q", errAnswer, header)
	}
	if status, err = strconv.Atoi(string(header[version : version+code])); err != nil {
		return 0, nil, 0, fmt.Errorf("%w: %q", errAnswer, header)
	}
	_, value, _ := bytes.Cut(header, lengthHeader)
	value, _, _ = bytes.Cut(value, headerEnd[:2])
	length, err := strconv.Atoi(string(value))
	whole := end + len(headerEnd) + length
	if err != nil || length < 0 || whole > maxAnswer {
		return 0, nil, 0, fmt.Errorf("%w: no or too large a length: %q", errAnswer, header)
	}
	if len(b) < whole {
		return 0, nil, 0, nil
	}
	return status, b[end+len(headerEnd) : whole], whole, nil
}

// A conn is a kept connection for one request after the other.
type conn struct {
	net.Conn
	out []byte // the request
	in  []byte
	got []byte // the last answer's body, until the next one
}

// dial connects; nothing on the connection waits beyond deadline.
func dial(ctx context.Context, address string, deadline time.Time) (*conn, error) {
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(deadline); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &conn{Conn: c, in: make([]byte, maxAnswer)}, nil
}

// roundTrip sends c.out and returns the answer's status; its body is in c.got.
func (c *conn) roundTrip() (status int, err error) {
	if _, err := c.Write(c.out); err != nil {
		return 0, err
	}
	for n := 0; ; {
		more, err := c.Read(c.in[n:])
		if err != nil {
			return 0, err
		}
		n += more
		status, body, size, err := parseAnswer(c.in[:n])
		if err != nil || size > 0 {
			c.got = body
			return status, err
		}
	}
}
