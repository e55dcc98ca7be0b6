package api

import (
	"sync"

	"quotad/internal/quota/model"
)

// A buffer is what one answer needs beside its own strings, kept for the next.
type buffer struct {
	b      []byte
	views  []model.View
	policy *policy // of the limits of the answer before
	last   subject // of the hit before: its strings are shared with the next one
}

// Buffers that a large batch has grown are left to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10), views: make([]model.View, 0, 8)} }}

// getBuffer returns an empty buffer, which is the caller's until putBuffer.
func getBuffer() *buffer { return buffers.Get().(*buffer) }

// putBuffer takes a buffer back; nobody may use it, or what it holds, any more.
func putBuffer(buf *buffer) {
	if cap(buf.b) > maxBufferKept {
		return
	}
	clear(buf.views) // of which there may be many, of old plans
	buf.b, buf.views = buf.b[:0], buf.views[:0]
	buffers.Put(buf)
}
