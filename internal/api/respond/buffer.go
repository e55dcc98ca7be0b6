package respond

import (
	"sync"

	"quotad/internal/quota/model"
)

// A Buffer is what one answer needs beside its own strings, kept for the next.
type Buffer struct {
	B      []byte
	Views  []model.View
	policy *policy // of the limits of the answer before
	Last   Subject // of the hit before: its strings are shared with the next one
}

// Buffers that a large batch has grown are left to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 4<<10), Views: make([]model.View, 0, 8)} }}

// GetBuffer returns an empty buffer, which is the caller's until PutBuffer.
func GetBuffer() *Buffer { return buffers.Get().(*Buffer) }

// PutBuffer takes a buffer back; nobody may use it, or what it holds, any more.
func PutBuffer(buf *Buffer) {
	if cap(buf.B) > maxBufferKept {
		return
	}
	clear(buf.Views) // of which there may be many, of old plans
	buf.B, buf.Views = buf.B[:0], buf.Views[:0]
	buffers.Put(buf)
}
