package respond

import (
	"context"
	"io"
)

// An Out takes a long answer while it is made. It takes no more once the request's time is over
// or its client has gone, and from the first failed write on. Whoever makes the answer then ends,
// for nobody reads the rest.
type Out struct {
	ctx context.Context
	to  io.Writer
	err error
}

// NewOut is an Out of a request's context.
func NewOut(ctx context.Context, to io.Writer) *Out { return &Out{ctx: ctx, to: to} }

// Write implements io.Writer. Errors: those of Err.
func (o *Out) Write(p []byte) (n int, err error) {
	if err = o.Err(); err == nil {
		n, err = o.to.Write(p)
		o.err = err
	}
	return n, err
}

// Err says why no more is taken: the context's error, or that of a write. Nil: more is taken.
func (o *Out) Err() error {
	if o.err == nil {
		o.err = o.ctx.Err()
	}
	return o.err
}

// Piece is the size from which an answer is sent on, in bytes, so that a large one is never in
// memory whole.
const Piece = 48 << 10
