package document

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style sheet
	"encoding/base64"
	"html/template"
	"time"

	"quotad/internal/billing"
)

//go:embed invoice.css
var style string

//go:embed invoice.html.tmpl
var pageSource string

var page = template.Must(template.New("invoice").Parse(pageSource))

// HTMLPolicy is the Content-Security-Policy that HTML is to be served under: its one style sheet,
// by hash, and nothing else.
var HTMLPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// HTML is an invoice as one page that needs no other file and has no script. It prints on A4 and
// on Letter. Its dates are those of zone, of UTC where that is nil.
func HTML(inv *billing.Invoice, zone *time.Location) ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		*paper
		Style template.CSS
	}{newPaper(inv, zone), template.CSS(style)}) //nolint:gosec // our own file
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
