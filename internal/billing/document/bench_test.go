package document_test

import (
	"testing"
	"time"

	"quotad/internal/billing/document"
)

// What a PDF costs, with the first font alone and with all of them.
func BenchmarkPDF(b *testing.B) {
	all := samples()
	for _, name := range []string{"open", "scripts"} {
		inv := all[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := document.PDF(&inv, time.UTC); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
