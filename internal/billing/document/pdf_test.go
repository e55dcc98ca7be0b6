package document_test

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"quotad/internal/billing"
)

func pages(content []byte) int {
	return len(regexp.MustCompile(`/Type /Page\b`).FindAll(content, -1))
}

func TestTheSameInvoiceMakesTheSameBytes(t *testing.T) { sameBytes(t, 1) }

// TestMoreBytesOfTheSameInvoice draws each sample more often: some orders differ now and then only.
func TestMoreBytesOfTheSameInvoice(t *testing.T) { sameBytes(t, 2) }

func sameBytes(t *testing.T, again int) {
	t.Helper()
	for name, inv := range samples() {
		first, page := pdf(t, inv), html(t, inv)
		if !bytes.HasPrefix(first, []byte("%PDF-1.")) || !bytes.HasSuffix(bytes.TrimSpace(first), []byte("%%EOF")) {
			t.Errorf("%s: that is no PDF", name)
		}
		for range again {
			if !bytes.Equal(first, pdf(t, inv)) {
				t.Errorf("%s: other bytes the second time", name)
			}
		}
		if page != html(t, inv) {
			t.Errorf("%s: another page the second time", name)
		}
	}
}

// TestBytesUnderAnotherTimeZone runs the program again with another $TZ.
func TestBytesUnderAnotherTimeZone(t *testing.T) {
	const to = "QUOTAD_TEST_PDF"
	if path := os.Getenv(to); path != "" {
		if err := os.WriteFile(path, pdf(t, sample()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	path := t.TempDir() + "/invoice.pdf"
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBytesUnderAnotherTimeZone$")
	again.Env = append(os.Environ(), "TZ=Pacific/Kiritimati", to+"="+path)
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	there, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(there, pdf(t, sample())) {
		t.Error("another time zone makes other bytes")
	}
}

func TestThePDFNamesItself(t *testing.T) {
	content := pdf(t, sample())
	for _, text := range []string{"/CreationDate (D:20260401010000)", "/ModDate (D:20260401010000)", "/Lang (en)"} {
		if !bytes.Contains(content, []byte(text)) {
			t.Errorf("lacks %s", text)
		}
	}
	var title strings.Builder
	for _, unit := range utf16.Encode([]rune("Invoice Q-17")) {
		title.WriteByte(byte(unit >> 8))
		title.WriteByte(byte(unit))
	}
	if !bytes.Contains(content, []byte("/Title (\xfe\xff"+title.String()+")")) {
		t.Error("lacks its title")
	}
}

func TestLongInvoicesHavePages(t *testing.T) {
	for _, c := range []struct{ lines, least, most int }{{1, 1, 1}, {10, 1, 1}, {30, 2, 3}, {200, 9, 13}} {
		if n := pages(pdf(t, long(c.lines))); n < c.least || n > c.most {
			t.Errorf("%d lines on %d pages, want %d to %d", c.lines, n, c.least, c.most)
		}
	}
}

func TestAnyTextIsDrawn(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("W", 500), strings.Repeat("wide words ", 50), "東京 👍 \U0010ffff", "\xff\xfe", "a\nb\r\nc",
		strings.Repeat("\u0301", 300), "(\\)", "{nb} {pages}",
	} {
		inv := sample()
		inv.Number, inv.CustomerKey, inv.Reference, inv.Held, inv.VoidReason, inv.OfNumber = text, text, text, text, text, text
		inv.Seller.Name, inv.Buyer.Name, inv.Taxes[0].Name, inv.Taxes[0].Note, inv.OrderReference = text, text, text, text, text
		for range 20 {
			inv.Seller.Payment, inv.Seller.Footer, inv.Notes = append(inv.Seller.Payment, text), append(inv.Seller.Footer, text), append(inv.Notes, text)
		}
		for range 60 {
			inv.Buyer.Address = append(inv.Buyer.Address, text)
		}
		for i := range inv.Lines {
			inv.Lines[i].Description = text
		}
		inv.Status = billing.StatusVoid
		if content := pdf(t, inv); pages(content) > 16 {
			t.Errorf("%.20q takes %d pages", text, pages(content))
		}
	}
}
