package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"quotad/internal/testkit"
)

// guidePictures are those of docs/guide/pictures.
var guidePictures = []struct {
	file, as, path string
	view           pageView // a height of 0 is the whole page
	part           string   // a selector: only that
}{
	{"portal.png", "acme", "/portal", pageView{1280, 0, 1, "light"}, ""},
	{"portal-phone-dark.png", "acme", "/portal", pageView{390, 1300, 1, "dark"}, ""},
	{"portal-usage.png", "acme", "/portal/usage?meter=requests&range=30d", pageView{1280, 700, 1, "light"}, ""},
	{"portal-refusals.png", "acme", "/portal/refusals", pageView{1280, 560, 1, "light"}, ""},
	{"portal-invoice.png", "globex", "/portal/invoices/{invoice}", pageView{1280, 0, 1, "light"}, ""},
	{"portal-plan.png", "acme", "/portal/plan", pageView{1280, 0, 1, "light"}, ""},
	{"admin.png", "admin", "/admin", pageView{1280, 0, 1, "light"}, ""},
	{"admin-customer-dark.png", "admin", "/admin/customers/acme", pageView{1280, 1000, 1, "dark"}, ""},
	{"plan-editor.png", "admin", "/admin/plans/pro", pageView{1280, 1000, 1, "light"}, ""},
	{"plan-compare.png", "admin", "/admin/plans/pro/play?compare=1", pageView{1280, 0, 1, "light"}, "#past"},
	{
		"playground.png", "", "/playground?limit=5000&window=1h&algorithm=sliding_window&pattern=edge&windows=3&steady=300&burst=3400",
		pageView{1280, 1250, 1, "light"},
		"",
	},
}

// TestShots writes the pictures that people look at into $QUOTAD_SHOTS, and does nothing without.
// $QUOTAD_SHOTS_ONLY is the rows, separated by semicolons, or guide: the pictures of the guide.
func TestShots(t *testing.T) {
	dir, only := os.Getenv("QUOTAD_SHOTS"), os.Getenv("QUOTAD_SHOTS_ONLY")
	if dir == "" {
		return
	}
	n := pagesWorld(t, "0s")
	w := openWindow(t, n)
	if only == "guide" {
		n.lived()
		for _, p := range guidePictures {
			w.open(&pageRow{path: p.path, as: p.as})
			w.view(pageView{p.view.width, max(p.view.height, 900), 1, p.view.scheme})
			w.shoot(filepath.Join(dir, p.file), p.part, p.view.height == 0)
		}
		return
	}
	for _, row := range pageRows() {
		if only != "" && !slices.Contains(strings.Split(only, ";"), row.name) {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			w.t = t
			w.open(&row)
			for _, v := range []pageView{{390, 900, 1, "light"}, {1280, 900, 1, "light"}, {390, 900, 1, "dark"}, {1280, 900, 1, "dark"}} {
				w.view(v)
				name := fmt.Sprintf("%s-%d-%s.png", strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(row.name), v.width, v.scheme)
				w.shoot(filepath.Join(dir, name), "", true)
			}
		})
	}
}

// shoot writes a picture of a part of the page, of the whole page, or of what is seen without scrolling.
func (w *window) shoot(file, part string, whole bool) {
	w.t.Helper()
	shot := chromedp.CaptureScreenshot()
	switch {
	case part != "":
		shot = chromedp.Screenshot(part)
	case whole:
		shot = chromedp.FullScreenshot(100)
	}
	picture, err := chromedp.Run(w.ctx, shot)
	if err == nil {
		picture, err = paletted(picture)
	}
	if err == nil {
		err = os.WriteFile(file, picture, 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// lived gives the pictures of the guide what a business has: a month of usage, refusals of several
// limits, and an invoice of the last month.
func (n *testNode) lived() {
	n.t.Helper()
	hour := time.Now().UTC().Truncate(time.Hour)
	month := time.Date(hour.Year(), hour.Month(), 1, 0, 0, 0, 0, time.UTC)
	var lines strings.Builder
	add := func(customer, meter string, cost int, at time.Time) {
		fmt.Fprintf(&lines, `{"id":"lived-%[1]s-%[2]s-%[3]d","customer":%[1]q,"meter":%[2]q,"cost":%[4]d,"at":%[5]q}`+"\n", customer, meter, at.Unix(),
			cost, at.Format(time.RFC3339))
	}
	for at := hour.Add(-61 * time.Hour); !at.Before(month); at = at.Add(-time.Hour) {
		busy := byHour(at)
		if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
			busy = busy/3 + 1
		}
		add("acme", "requests", busy*(70+at.Day()), at)
	}
	n.do("PUT", "/v1/customers/globex", fmt.Sprintf(`{"name":"Globex Ltd","plan":"pro","timezone":"Europe/London","billing_anchor":%q}`,
		month.AddDate(0, -1, 0).Format("2006-01-02T15:04:05"))).is(201)
	for at := month.Add(-2 * time.Hour); at.After(month.AddDate(0, -1, 0)); at = at.Add(-24 * time.Hour) {
		add("globex", "requests", 41_300+917*at.Day(), at)
		add("globex", "tokens", 402_000+9_100*at.Day(), at)
		add("globex", "exports", 31+at.Day(), at)
	}
	n.do("POST", "/v1/imports", lines.String(), "Content-Type: application/x-ndjson").is(200).has("failed", 0)
	n.do("PUT", "/v1/customers/globex/billing",
		fmt.Sprintf(`{"starts_at":%q,"buyer":{"name":"Globex Ltd","address":["1 High Street","London EC1A 1BB"],"country":"GB"},"taxes":[{"name":"VAT","percent":"20","inclusive":false}]}`,
			month.AddDate(0, -1, 0).Format(time.RFC3339))).is(200)
	testkit.Eventually(n.t, "last month is billed", func() bool {
		list := n.do("GET", "/v1/customers/globex/invoices", "").is(200)
		if list.at("items.0.id") == nil {
			return false
		}
		n.invoice = list.str("items.0.id")
		return true
	})
	n.do("POST", "/v1/invoices/"+n.invoice+"/finalize", "").is(200)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"exports","cost":90}`).is(429)
	n.do("POST", "/v1/hits", `{"customer":"acme","meter":"seats","cost":5}`).is(429)
	n.do("POST", "/v1/reservations", `{"customer":"acme","meter":"renders","cost":4,"ttl_ms":600000}`).is(429)
}

// paletted is a picture in at most 256 colours: the most frequent ones of its parts of the colour space.
// Pages are mostly plain, so one sees no difference, and the file is a third.
func paletted(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	at := from.Bounds()
	counts := map[color.RGBA]int{}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			counts[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	type part struct {
		of          color.RGBA
		most, count int
	}
	parts := map[[3]uint8]part{}
	for c, n := range counts {
		p := parts[[3]uint8{c.R >> 3, c.G >> 3, c.B >> 3}]
		if p.count += n; n > p.most {
			p.of, p.most = c, n
		}
		parts[[3]uint8{c.R >> 3, c.G >> 3, c.B >> 3}] = p
	}
	var all []part
	for _, p := range parts {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b part) int { return cmp.Compare(b.count, a.count) })
	var colours color.Palette
	for _, p := range all[:min(len(all), 256)] {
		colours = append(colours, p.of)
	}
	to, index := image.NewPaletted(at, colours), map[color.RGBA]uint8{}
	for c := range counts {
		index[c] = uint8(colours.Index(c))
	}
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			to.SetColorIndex(x, y, index[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}
