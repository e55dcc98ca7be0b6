package respond

import (
	"context"
	"io"
)

// Out accepts a long response while it is generated. It accepts no more data after the request's time has ended,
// the client has disconnected, or a write has failed. The generator of the response then ends, because nobody
// reads the rest.
type Out struct {
	ctx context.Context
	to  io.Writer
	err error
}

// NewOut returns an Out for a request's context.
func NewOut(ctx context.Context, to io.Writer) *Out { return &Out{ctx: ctx, to: to} }

// Write implements io.Writer. Errors: those of Err.
func (o *Out) Write(p []byte) (n int, err error) {
	if err = o.Err(); err == nil {
		n, err = o.to.Write(p)
		o.err = err
	}
	return n, err
}

// Err returns the reason why no more data is accepted: the context's error or a write's error. It returns nil
// while data is accepted.
func (o *Out) Err() error {
	if o.err == nil {
		o.err = o.ctx.Err()
	}
	return o.err
}

// Piece is the size in bytes from which a part of a response is sent, so that a large response is never
// completely in memory.
const Piece = 48 << 10
