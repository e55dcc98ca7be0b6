package page

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotad/internal/web/words"
)

// sheets are the templates of pages by their file's name.
type sheets map[string]*template.Template

// loadSheets reads each file of templates/pages together with all of templates/shared, which
// holds the layouts and the parts. more are functions that templates have beside those of all.
func loadSheets(files fs.FS, a *assets, more template.FuncMap) (sheets, error) {
	shared, err := template.New("").Funcs(functions(a)).Funcs(more).ParseFS(files, "templates/shared/*.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/pages/*.html")
	if err != nil {
		return nil, err
	}
	all := sheets{}
	for _, name := range names {
		own, err := shared.Clone()
		if err == nil {
			own, err = own.ParseFS(files, name)
		}
		if err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(name), ".html")] = own
	}
	return all, nil
}

func functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":      a.url,
		"number":     words.Number,
		"bar":        words.Bar,
		"portalTabs": portalTabs,
		"adminTabs":  adminTabs,
		"pair":       newPair,
		"next":       func(n int) int { return n + 1 },
		"has":        slices.Contains[[]string],
	}
}

// A pair is two values that a part of a page is drawn from.
type pair struct{ A, B any }

func newPair(a, b any) pair { return pair{a, b} }

// A frame is what stands around a page.
type frame struct {
	Title, Tab  string
	Brand       *Brand
	Who         string // whose pages they are, or who is signed in
	Scope       string
	Theme       string
	Back        string // where the portal leads back to
	Now         string // what the page's clock shows, for countdowns
	AsOf        string // the same for people
	Zone        string // of all times of the page: its IANA name
	ZoneText    string // for people
	Clock       string // the test clock that the customer lives by whom the page is about: it stands
	Archived    bool
	Live        bool
	Trouble     string // why hits are not counted now
	Plan        string
	PlanVersion int
}

// sheetData is what a template gets.
type sheetData struct {
	Frame *frame
	Data  any
}

// layout is what stands around the pages of a visit.
func (v *Visit) layout() string {
	switch {
	case v.Customer != nil:
		return "portal"
	case v.Session != nil:
		return "admin"
	}
	return "plain"
}

func (v *Visit) frame(shown *View, now time.Time) *frame {
	f := &frame{
		Title: shown.Title, Tab: shown.Tab, Brand: &v.Site.Options.Brand, Live: shown.Live,
		Now: now.UTC().Format("2006-01-02T15:04:05.000Z"), AsOf: now.In(v.Zone).Format("15:04:05"), Zone: v.Zone.String(), ZoneText: words.ZoneText(now, v.Zone),
		Who: v.As.KeyName, Scope: string(v.As.Scope), Trouble: v.Site.Options.Trouble(),
	}
	f.Theme, f.Back = v.Look.Theme, v.Look.Back
	if c := v.Customer; c != nil {
		f.Who, f.Plan, f.PlanVersion, f.Archived = cmp.Or(c.Name, c.Key), c.Plan, c.EffectiveVersion, c.ArchivedAt != nil
	}
	if v.OnTestClock() {
		f.Clock = *v.about.TestClock
	}
	return f
}

// draw answers with a view. A page that cannot be drawn is a message that can.
func (s *Site) draw(w http.ResponseWriter, v *Visit, shown *View) {
	h := w.Header()
	Protect(h, v.Look.Embed)
	switch {
	case shown.To != "":
		h.Set("Location", shown.To)
		w.WriteHeader(http.StatusSeeOther)
		return
	case shown.File != nil:
		h.Set("Content-Type", shown.File.MediaType)
		if shown.File.Policy != "" {
			h.Set("Content-Security-Policy", shown.File.Policy)
		}
		if !shown.File.Shown {
			h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(shown.File.Name))
		}
		s.send(w, v.R, http.StatusOK, shown.File.Body)
		return
	}
	body, err := s.render(v, shown)
	if err != nil {
		s.Options.Log.Error("page cannot be drawn", "path", v.R.URL.Path, "error", err)
		shown = errBroken.View()
		body, _ = s.render(v, shown)
	}
	if shown.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Cookie realm="pages"`)
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	s.send(w, v.R, cmp.Or(shown.Status, http.StatusOK), body)
}

func (s *Site) render(v *Visit, shown *View) ([]byte, error) {
	now, err := v.Now()
	if err != nil {
		now = s.Options.Wall() // the page of an outage has a time, too
	}
	sheet := s.sheets[shown.Sheet]
	if sheet == nil {
		return nil, fmt.Errorf("there is no sheet %q", shown.Sheet)
	}
	var all bytes.Buffer
	err = sheet.ExecuteTemplate(&all, cmp.Or(shown.Layout, v.layout()), sheetData{v.frame(shown, now), shown.Data})
	return all.Bytes(), err
}

// smallBody is what is not worth compressing, in bytes.
const smallBody = 1000

// send writes a body, compressed where the browser takes that. Pages hold no secret that another
// site could guess by their length.
func (s *Site) send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= smallBody && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = compress(body, gzip.DefaultCompression)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // templates escaped it; an error means that the browser is gone
}

func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(q) != "q=0" {
			return true
		}
	}
	return false
}

func compress(body []byte, level int) []byte {
	var all bytes.Buffer
	w, _ := gzip.NewWriterLevel(&all, level) // the level is one of the package's
	_, _ = w.Write(body)                     // a buffer takes all
	_ = w.Close()
	return all.Bytes()
}
