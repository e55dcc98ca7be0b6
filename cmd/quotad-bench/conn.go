package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

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
