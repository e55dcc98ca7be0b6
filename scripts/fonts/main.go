// Command fonts cuts the fonts of PDFs to the letters that they are for. scripts/assets.sh runs it:
//
//	fonts FROM TO RANGES
//
// FROM is a TrueType font. TO is written as gzip. RANGES are hexadecimal: 3040-30ff,4e00-9fff.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"strings"

	"codeberg.org/go-pdf/fpdf"
)

func main() {
	if err := cut(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func cut(from, to, ranges string) error {
	font, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var letters strings.Builder
	for _, span := range strings.Split(ranges, ",") {
		var first, last rune
		if _, err := fmt.Sscanf(span, "%x-%x", &first, &last); err != nil {
			return fmt.Errorf("the range %s: %w", span, err)
		}
		for r := first; r <= last; r++ {
			letters.WriteRune(r)
		}
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(fpdf.UTF8CutFont(font, letters.String())); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644) //nolint:gosec // it is committed
}
