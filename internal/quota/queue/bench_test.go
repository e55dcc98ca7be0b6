package queue

import (
	"fmt"
	"sync/atomic"
	"testing"

	"quotad/internal/quota/model"
)

// BenchmarkInbox is a batch of hits, in and out, of one sender or of two in turn.
func BenchmarkInbox(b *testing.B) {
	for _, senders := range []int{1, 2} {
		b.Run(fmt.Sprint(senders), func(b *testing.B) {
			in := NewInbox[*Hit](new(atomic.Int64))
			hits := make([]*Hit, MaxBatch)
			for i := range hits {
				hits[i] = &Hit{From: SenderID(fmt.Sprint("key_", i%senders)), Target: &model.Target{Counters: make([]model.Counter, 1)}}
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, h := range hits {
					_, _ = in.Enqueue(roomy, h)
				}
				for in.Queued() > 0 {
					in.Take(func(*Hit) bool { return true })
				}
			}
		})
	}
}
