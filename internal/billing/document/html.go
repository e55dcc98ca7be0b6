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

// HTMLPolicy is the Content-Security-Policy with which HTML must be served. It allows only the page's style
// sheet, by its hash.
var HTMLPolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// HTML renders an invoice as one page without scripts or other files. The page prints on A4 and on Letter.
// Dates are in the timezone zone, or in UTC if zone is nil.
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
