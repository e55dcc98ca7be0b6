package respond

import (
	"sync"

	"quotad/internal/quota/model"
)

// A Buffer is the memory that one answer needs beside its own strings. A pool keeps it for the
// next answer.
type Buffer struct {
	B      []byte
	Views  []model.View
	policy *policy // header values of the limits of the last answer
	Last   Subject // the subject of the last hit: the next hit shares its strings
}

// maxBufferKept is the largest buffer that the pool keeps, in bytes. Larger ones, which large
// batches make, go to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, 4<<10), Views: make([]model.View, 0, 8)} }}

// GetBuffer returns an empty buffer, which is the caller's until PutBuffer.
func GetBuffer() *Buffer { return buffers.Get().(*Buffer) }

// PutBuffer takes a buffer back; nobody may use it, or what it holds, any more.
func PutBuffer(buf *Buffer) {
	if cap(buf.B) > maxBufferKept {
		return
	}
	clear(buf.Views) // else the pool would keep the limits of old plans alive
	buf.B, buf.Views = buf.B[:0], buf.Views[:0]
	buffers.Put(buf)
}
