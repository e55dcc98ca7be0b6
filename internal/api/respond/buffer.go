package respond

import (
	"sync"

	"quotad/internal/quota/model"
	"quotad/internal/quota/queue"
)

// A Buffer is the memory that one answer needs beside its own strings. A pool keeps it for the
// next answer.
type Buffer struct {
	B      []byte
	Views  []model.View
	policy *policy // of the limits of the answer before
	Last   Subject // of the hit before: its strings are shared with the next one

	From   queue.SenderID // whose share of the budget is taken; set before the first Hold
	budget *Budget
	held   int64 // bytes taken from the budget
}

// maxBufferKept is the largest buffer that the pool keeps, in bytes. Larger ones, which large
// batches make, go to the garbage collector.
const maxBufferKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{B: make([]byte, 0, Free), Views: make([]model.View, 0, 8)} }}

// GetBuffer returns an empty buffer, which is the caller's until PutBuffer.
func GetBuffer() *Buffer { return buffers.Get().(*Buffer) }

// BufferFor is GetBuffer for a request of a sender.
func BufferFor(from queue.SenderID) *Buffer {
	buf := GetBuffer()
	buf.From = from
	return buf
}

// PutBuffer takes a buffer back; nobody may use it, or what it holds, any more.
func PutBuffer(buf *Buffer) {
	buf.Release()
	buf.From = ""
	if cap(buf.B) > maxBufferKept {
		return
	}
	clear(buf.Views) // else the pool would keep the limits of old plans alive
	buf.B, buf.Views = buf.B[:0], buf.Views[:0]
	buffers.Put(buf)
}

// Room is how many bytes B may have now.
func (buf *Buffer) Room() int { return min(cap(buf.B), Free+int(buf.held)) }

// Grow makes room for size bytes in B. Errors: those of Hold.
func (buf *Buffer) Grow(budget *Budget, size int) error {
	if err := buf.Hold(budget, size); err != nil {
		return err
	}
	if size > cap(buf.B) {
		grown := make([]byte, len(buf.B), size)
		copy(grown, buf.B)
		buf.B = grown
	}
	return nil
}

// Hold takes from the budget what size bytes need beyond those that are held already, until
// Release. A buffer has the same budget each time. Errors: ErrMemory, ErrMemoryShare.
func (buf *Buffer) Hold(budget *Budget, size int) error {
	n := int64(size) - Free - buf.held
	if n <= 0 {
		return nil
	}
	if err := budget.take(buf.From, buf.held, n); err != nil {
		return err
	}
	buf.budget, buf.held = budget, buf.held+n
	return nil
}

// Release gives back what is held.
func (buf *Buffer) Release() {
	if buf.held > 0 {
		buf.budget.shares.Give(buf.From, buf.held)
		buf.budget, buf.held = nil, 0
	}
}
